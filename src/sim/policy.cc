// Faults that always come together hide each other: each is off every second day.
#include "sim/policy.h"

namespace holdfast::sim {

Policy draw_policy(SimRandom& random) {
  Policy policy;
  const auto sometimes = [&random](double at_most) {
    return random.chance(0.5) ? at_most * static_cast<double>(random.below(1001)) / 1000 : 0.0;
  };
  const auto slower = [&random](Delay& delay) {
    if (random.chance(0.5)) delay.max *= static_cast<Nanos::rep>(1 + random.below(20));
  };
  policy.net.duplicate = sometimes(0.1);
  policy.net.reorder = sometimes(0.1);
  policy.process.spawn_fails = sometimes(0.2);
  policy.process.fork_fails = sometimes(0.2);
  policy.process.fork_server_fails = sometimes(0.2);
  slower(policy.loop.timer_late);
  slower(policy.net.same_node);
  slower(policy.net.between_nodes);
  slower(policy.net.reorder_by);
  slower(policy.process.start);
  slower(policy.process.notice);
  slower(policy.process.fork);
  return policy;
}

}  // namespace holdfast::sim
