// When to try again, and when to give up. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace holdfast::world {

struct RetryPolicy {
  unsigned tries_max = 8;           ///< of what is likely to pass: broken connections, busy servers
  unsigned tries_max_unlikely = 3;  ///< of what seldom does: a refused connection, an unknown host, a wrong answer
  std::chrono::milliseconds wait_min{100};
  std::chrono::milliseconds wait_max{10'000};
  std::chrono::milliseconds asked_wait_max{30'000};  ///< of what a server's Retry-After may ask for
};

/// How long to wait after `failures` (at least 1) failed tries: doubling from wait_min up to wait_max, of which
/// `chance` takes off up to a half, so that clients which failed together don't come back together; or what the server
/// asked for.
std::chrono::milliseconds wait_before_retry(const RetryPolicy& policy, unsigned failures, std::uint64_t chance,
                                            std::optional<std::chrono::seconds> asked);

}  // namespace holdfast::world
