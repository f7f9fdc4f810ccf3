// The one event loop a daemon runs on: timers, and work handed in from other threads.
#pragma once

#include <cstdint>
#include <functional>

#include "world/clock.h"

namespace holdfast::world {

using TimerId = std::uint64_t;
constexpr TimerId kNoTimer = 0;

class Loop {
 public:
  virtual ~Loop() = default;
  /// Runs `fn` on the loop after `delay` of steady time.
  virtual TimerId call_after(Nanos delay, std::function<void()> fn) = 0;
  /// Unknown or fired ids are ignored.
  virtual void cancel(TimerId id) = 0;
  /// Runs `fn` on the loop soon. The only call of this class allowed from other threads.
  virtual void post(std::function<void()> fn) = 0;
  /// Runs `work` off the loop (a thread of the world's own), then `done` on the loop. Slow disk work goes here.
  virtual void background(std::function<void()> work, std::function<void()> done) = 0;
  /// Serves events until `stop`.
  virtual void run() = 0;
  virtual void stop() = 0;
};

}  // namespace holdfast::world
