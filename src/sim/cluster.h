// Simulated machines, the network between them and the processes on them, all on one clock and one thread, all from one
// seed. A test makes one, adds programs, spawns them, lets time pass, and breaks things.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/network.h"
#include "sim/node.h"
#include "sim/policy.h"
#include "sim/process_table.h"
#include "sim/schedule.h"

namespace holdfast::sim {

class Cluster {
 public:
  explicit Cluster(std::uint64_t seed);
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  std::uint64_t seed() const { return seed_; }
  /// May be changed at any time; the disks have their own: node(...).disk().policy.
  Policy policy;

  /// The machine of this name; made when first asked for.
  Node& node(const std::string& name);
  /// What `argv[0] == name` runs, on every machine.
  void add_program(const std::string& name, ActorFactory factory);
  /// Starts a program that is nobody's child. CHECKs that the program is known. The world lasts as long as the cluster.
  SimWorld& spawn(Node& node, SpawnSpec spec);
  SimWorld& spawn(const std::string& node_name, SpawnSpec spec) { return spawn(node(node_name), std::move(spec)); }
  /// A process without a program, driven by the test itself; one a machine. It is back after crash and restart.
  SimWorld& main(Node& node);
  SimWorld& main(const std::string& node_name) { return main(node(node_name)); }
  /// The world of this process, dead or alive; CHECKs that there is one.
  SimWorld& world_of(pid_t pid);
  /// Pids of all live processes, in the order of their start.
  std::vector<pid_t> alive();

  // Time. None of these may be called from inside an event.
  Nanos now() const { return schedule_.now(); }
  void run_for(Nanos time);
  /// Until `reached()`, looked at after every event. False: not within `patience`.
  bool run_until(const std::function<bool()>& reached, Nanos patience);
  /// Until nothing is left to happen. CHECKs that this comes within `events_max` events.
  void run_until_idle(std::uint64_t events_max = 10'000'000);
  /// The test's own event.
  void after(Nanos delay, std::function<void()> fn);

  // Faults. See also Node (crash, wall clock), SimWorld (kill_after, signal) and `policy`.
  void partition(const std::string& a, const std::string& b) { network_.partition(node(a), node(b)); }
  void heal(const std::string& a, const std::string& b) { network_.heal(node(a), node(b)); }
  void heal_all() { network_.heal_all(); }

  /// Equal for two runs that went the same way, event by event.
  std::uint64_t trace_hash() const { return schedule_.trace_hash(); }
  std::uint64_t events_run() const { return schedule_.events_run(); }
  /// Gets a line for everything that happens. HOLDFAST_SIM_TRACE=1 prints them to standard error.
  void set_trace(std::function<void(const std::string&)> fn) { trace_ = std::move(fn); }

  // For the simulation's own parts.
  Schedule& schedule() { return schedule_; }
  Network& network() { return network_; }
  ProcessTable& processes() { return processes_; }
  const std::map<std::string, std::unique_ptr<Node>>& nodes() const { return nodes_; }
  bool traced() const { return static_cast<bool>(trace_); }
  void trace(const ProcessRecord* process, const std::string& line);
  SimRandom random_for(std::uint64_t tag) const { return SimRandom(seed_).split(tag); }
  /// A main process whose world is made elsewhere.
  ProcessRecord& adopt_main(Node& node);
  void revive_main(Node& node);
  bool run_next(Nanos limit);
  bool in_event() const { return in_event_; }
  /// Everything ends at once, and nobody is told. Nothing can be done with the cluster after it.
  void shut_down();

 private:
  std::uint64_t seed_;
  std::function<void(const std::string&)> trace_;
  bool in_event_ = false;
  Schedule schedule_;
  std::map<std::string, std::unique_ptr<Node>> nodes_;
  Network network_;
  ProcessTable processes_;
  std::map<const Node*, ProcessRecord*> mains_;
};

}  // namespace holdfast::sim
