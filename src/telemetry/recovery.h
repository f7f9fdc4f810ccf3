// The phases of one recovery, from the moments the run wrote down.
#pragma once

#include "world/clock.h"

namespace holdfast::telemetry {

using world::Nanos;

/// Moments on one steady clock, in the order they should happen.
struct RecoveryMoments {
  Nanos began{0};      ///< the fault itself where known, else the culprit's last sign of life
  Nanos seen{0};       ///< the verdict
  Nanos fenced{0};     ///< the guilty are dead, the old group is broken
  Nanos regrouped{0};  ///< the last rank is in the new group
  Nanos restored{0};   ///< the last rank has its state
  Nanos stepped{0};    ///< the first step of the new group is complete on all ranks
};

/// How long each phase took. They add up to `total`.
struct RecoveryTimes {
  Nanos seen{0};  ///< the moment of the verdict, as given
  Nanos detect{0};
  Nanos fence{0};
  Nanos regroup{0};
  Nanos restore{0};
  Nanos first_step{0};
  Nanos total() const { return detect + fence + regroup + restore + first_step; }
};

/// A moment that is missing (zero) or lies before the one it should follow gives a phase of no length.
RecoveryTimes recovery_times(const RecoveryMoments& moments);

}  // namespace holdfast::telemetry
