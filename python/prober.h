// A thread that asks the interpreter what it is doing: it may have to wait for the interpreter lock for ever, which no
// other thread of ours may.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace holdfast::python {

class Prober {
 public:
  /// `ask` runs on the prober's thread.
  explicit Prober(std::function<void(std::uint64_t probe)> ask);
  /// Leaves the thread behind where it is stuck in `ask`: the process is about to end.
  ~Prober();
  /// From any thread; never blocks. A probe that comes while one is stuck replaces any that waits.
  void want(std::uint64_t probe);

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable wake;
    std::optional<std::uint64_t> wanted;
    bool asking = false;
    bool ending = false;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();  // shared with a thread that may outlive us
  std::thread thread_;
};

}  // namespace holdfast::python
