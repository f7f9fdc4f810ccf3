// The event loop of one simulated process.
#pragma once

#include <deque>

#include "sim/cluster.h"
#include "world/loop.h"

namespace holdfast::sim {

class SimLoop final : public world::Loop {
 public:
  SimLoop(Cluster& cluster, ProcessRecord& process) : cluster_(cluster), process_(process) {}
  TimerId call_after(Nanos delay, std::function<void()> fn) override;
  void cancel(TimerId id) override;
  void post(std::function<void()> fn) override;
  /// Four at a time, as the real one. `work` runs in no time, `done` comes after what its disk calls would have taken.
  void background(std::function<void()> work, std::function<void()> done) override;
  /// For a process without a program: the test's own. Returns also when nothing is left to happen.
  void run() override;
  void stop() override;
  /// The process begins anew.
  void reset();

 private:
  struct Job {
    std::function<void()> work;
    std::function<void()> done;
  };
  void start_job();

  Cluster& cluster_;
  ProcessRecord& process_;
  std::deque<Job> jobs_;
  int busy_ = 0;
  bool stopping_ = false;
};

}  // namespace holdfast::sim
