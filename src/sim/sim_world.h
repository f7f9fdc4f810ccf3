// World as one simulated process sees it. `SimWorld world(seed)` is the short way to a cluster of one machine with one
// process, which the test itself drives.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster.h"
#include "world/world.h"

namespace holdfast::sim {

class SimWorld final : public world::World {
 public:
  /// A cluster of its own.
  explicit SimWorld(std::uint64_t seed);
  /// For Cluster: the world of `process`.
  SimWorld(Cluster& cluster, ProcessRecord& process);
  ~SimWorld() override;

  world::Clock& clock() override;
  world::Random& random() override;
  world::Loop& loop() override;
  world::Disk& disk() override;
  world::Net& net() override;
  world::Processes& processes() override;

  // What a program knows of itself.
  pid_t pid() const;
  const SpawnSpec& spec() const;
  std::optional<std::string> env(const std::string& name) const;
  /// The memory its parent shares with it; empty where there is none.
  std::span<std::byte> ring();
  /// Writes to its standard output or error.
  void print(world::Stream stream, const std::string& text);
  /// Orphans among its descendants become its children.
  void become_subreaper();
  void exit(int code);
  /// A child in its own process group, of which nothing is heard: a data-loading worker, say. It dies with us only by
  /// a signal to the group.
  pid_t fork_helper(const std::vector<std::string>& argv);
  /// From now on (or no longer) its native code burns CPU; its events go on.
  void spin(bool on);

  // What can be done to it.
  bool alive() const;
  ExitStatus exit_status() const;
  void signal(int number);
  /// It gets no CPU, and nobody is told; `thaw` undoes it.
  void freeze();
  void thaw();
  /// SIGKILL shall not work on it until `release`: it sleeps in the kernel.
  void make_unkillable();
  void release();
  /// No message reaches or leaves it until `rejoin`.
  void isolate();
  void rejoin();
  /// `calls` more calls into its World work, then it is killed; its machine goes on.
  void kill_after(std::uint64_t calls);
  /// The process dies and begins anew, its machine goes on: nothing on disk is lost. For one without a program.
  void respawn();
  /// Calls into its World so far: what to sweep `kill_after` over.
  std::uint64_t calls() const;

  // Its machine and its cluster, in short.
  Cluster& cluster() { return cluster_; }
  Node& node();
  /// `calls` more disk calls work; then the power fails and every call fails with Unavailable until `restart`.
  void crash_after(std::uint64_t calls) { node().crash_after(calls); }
  void crash() { node().crash(); }
  /// Power back, crashing first where that has not happened yet.
  void restart();
  std::uint64_t disk_calls() { return node().disk_calls(); }
  bool flip_byte(const std::string& path, std::uint64_t offset) { return node().disk().flip_byte(path, offset); }
  DiskPolicy& disk_policy() { return node().disk().policy; }
  void run_for(Nanos time) { cluster_.run_for(time); }
  bool run_until(const std::function<bool()>& reached, Nanos patience) { return cluster_.run_until(reached, patience); }

  /// For the simulation: the process begins anew, nothing of before runs any more.
  void reset();

 private:
  struct Parts;
  std::unique_ptr<Cluster> own_cluster_;  ///< of a SimWorld(seed)
  Cluster& cluster_;
  ProcessRecord& process_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace holdfast::sim
