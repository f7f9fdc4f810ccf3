// One task on a thread of its own.
#pragma once

#include <functional>
#include <thread>

namespace holdfast::world {

/// Runs `task`, which must not throw, from now on; the destructor waits for its end.
class Background {
 public:
  explicit Background(std::function<void()> task) : thread_(std::move(task)) {}
  ~Background() { thread_.join(); }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

 private:
  std::thread thread_;
};

}  // namespace holdfast::world
