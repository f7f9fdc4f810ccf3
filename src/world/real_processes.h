// Processes on Linux: pidfds, process groups, memfds, a fork server behind a socket.
#pragma once

#include <asio/signal_set.hpp>
#include <memory>
#include <vector>

#include "world/family.h"
#include "world/processes.h"
#include "world/real_loop.h"

namespace holdfast::world {

struct ProcessPolicy {
  Nanos fork_patience = std::chrono::seconds(10);  ///< for a fork server's answer
};

/// At most one in a process may be a subreaper: it takes every orphan for its own. All calls come on the loop's thread,
/// which outlives every child with `die_with_us`: Linux ties them to the thread that started them. `loop` outlives this
/// object and all handles made by it.
class RealProcesses final : public Processes {
 public:
  RealProcesses(RealLoop& loop, bool subreaper, const ProcessPolicy& policy = {});
  Result<std::unique_ptr<Process>> spawn(const SpawnSpec& spec, ProcessEvents events) override;
  Result<std::unique_ptr<ForkServer>> spawn_fork_server(const SpawnSpec& spec, ProcessEvents events,
                                                        std::function<void(Result<int> threads)> on_ready) override;
  Result<std::unique_ptr<SharedMemory>> make_shared_memory(std::size_t bytes) override;
  std::vector<pid_t> kill_all(Nanos patience) override;
  void on_signal(int number, std::function<void()> fn) override;

 private:
  void start_watching();
  void next_child_signal();
  Result<std::shared_ptr<Child>> start(const SpawnSpec& spec, ProcessEvents events, int socket);

  RealLoop& loop_;
  ProcessPolicy policy_;
  Family family_;
  asio::signal_set child_signals_;
  bool watching_ = false;  // only a process that has children of ours takes SIGCHLD away from others
  std::vector<std::unique_ptr<asio::signal_set>> signals_;
};

}  // namespace holdfast::world
