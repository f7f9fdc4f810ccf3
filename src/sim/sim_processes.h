// Child processes as one simulated process sees them.
#pragma once

#include "sim/cluster.h"
#include "world/processes.h"

namespace holdfast::sim {

class SimProcesses final : public world::Processes {
 public:
  SimProcesses(Cluster& cluster, ProcessRecord& process) : cluster_(cluster), process_(process) {}
  Result<std::unique_ptr<world::Process>> spawn(const SpawnSpec& spec, ProcessEvents events) override;
  /// Its `argv` is not looked up: the server is the simulation's own. What it forks is, by argv[0].
  Result<std::unique_ptr<world::ForkServer>> spawn_fork_server(
      const SpawnSpec& spec, ProcessEvents events, std::function<void(Result<int> threads)> on_ready) override;
  Result<std::unique_ptr<world::SharedMemory>> make_shared_memory(std::size_t bytes) override;
  /// No time passes.
  std::vector<pid_t> kill_all(Nanos patience) override;
  void on_signal(int number, std::function<void()> fn) override;

 private:
  Cluster& cluster_;
  ProcessRecord& process_;
};

/// Memory that a child may map; it outlives whoever maps it.
class SimSharedMemory final : public world::SharedMemory {
 public:
  explicit SimSharedMemory(std::size_t bytes) : pages_(std::make_shared<std::vector<std::byte>>(bytes)) {}
  std::span<std::byte> bytes() override { return *pages_; }
  const Pages& pages() const { return pages_; }

 private:
  Pages pages_;
};

/// The spawner's hold on a child. Once it is destroyed nothing of the child is heard any more.
class SimChild final : public world::Process {
 public:
  SimChild(Cluster& cluster, ProcessRecord& child) : cluster_(cluster), child_(child) {}
  ~SimChild() override { child_.events.reset(); }
  pid_t pid() const override { return child_.pid; }
  bool running() const override { return !child_.noticed; }
  void signal(int number) override;
  void signal_group(int number) override;
  Result<std::pair<Nanos, char>> usage() override;

 private:
  Cluster& cluster_;
  ProcessRecord& child_;
};

}  // namespace holdfast::sim
