#include "world/retry.h"

#include <algorithm>

namespace holdfast::world {

std::chrono::milliseconds wait_before_retry(const RetryPolicy& policy, unsigned failures, std::uint64_t chance,
                                            std::optional<std::chrono::seconds> asked) {
  auto wait = policy.wait_min;
  for (unsigned i = 1; i < failures && wait < policy.wait_max; ++i) wait *= 2;
  wait = std::min(wait, policy.wait_max);
  constexpr std::uint64_t steps = 1024;
  wait -= wait / 2 * (chance % steps) / steps;
  if (!asked) return wait;
  // Compared in seconds: a hostile number of them would overflow in milliseconds.
  const auto bound = std::chrono::ceil<std::chrono::seconds>(policy.asked_wait_max);
  const std::chrono::milliseconds asked_wait =
      std::min<std::chrono::milliseconds>(std::clamp(*asked, std::chrono::seconds(0), bound), policy.asked_wait_max);
  return std::max(wait, asked_wait);
}

}  // namespace holdfast::world
