#include "telemetry/recovery.h"

#include <algorithm>

namespace holdfast::telemetry {

RecoveryTimes recovery_times(const RecoveryMoments& moments) {
  Nanos reached = moments.began;
  const auto until = [&](Nanos moment) {
    const Nanos before = reached;
    reached = std::max(reached, moment);
    return reached - before;
  };
  RecoveryTimes times;
  times.seen = moments.seen;
  times.detect = until(moments.seen);
  times.fence = until(moments.fenced);
  times.regroup = until(moments.regrouped);
  times.restore = until(moments.restored);
  times.first_step = until(moments.stepped);
  return times;
}

}  // namespace holdfast::telemetry
