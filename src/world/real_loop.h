// Loop on one asio context; the one header of this room that shows asio.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <memory>
#include <unordered_map>

#include "world/loop.h"

namespace holdfast::world {

class RealLoop final : public Loop {
 public:
  RealLoop();
  /// Waits for background work that has begun; what has not is dropped.
  ~RealLoop() override;
  TimerId call_after(Nanos delay, std::function<void()> fn) override;
  void cancel(TimerId id) override;
  void post(std::function<void()> fn) override;
  void background(std::function<void()> work, std::function<void()> done) override;
  /// Called again after a `stop`, it goes on where it was. A `stop` before it makes it return at once.
  void run() override;
  void stop() override;

  asio::io_context& context() { return context_; }

 private:
  class Pool;

  asio::io_context context_{1};
  std::unordered_map<TimerId, std::unique_ptr<asio::steady_timer>> timers_;
  TimerId last_timer_ = kNoTimer;
  std::unique_ptr<Pool> pool_;  // made on first use: a process that never asks for it stays single-threaded
};

}  // namespace holdfast::world
