// Simulated processes: who is whose child, who runs, who is stopped, how they end.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/actor.h"
#include "sim/network.h"
#include "sim/node.h"
#include "sim/schedule.h"
#include "world/processes.h"

namespace holdfast::sim {

using world::ExitStatus;
using world::ProcessEvents;
using world::SpawnSpec;

/// Why the events of a process wait: any of these bits.
using Hold = unsigned;
constexpr Hold kStopped = 1;     ///< SIGSTOP
constexpr Hold kFrozen = 2;      ///< gets no CPU; nobody is told
constexpr Hold kUnkillable = 4;  ///< uninterruptible sleep in the kernel

/// Memory of a SharedMemory. Shared: it lives as long as parent or child has it mapped.
using Pages = std::shared_ptr<std::vector<std::byte>>;

/// One simulated process. Lives as long as the cluster, so handles to the dead never dangle.
struct ProcessRecord {
  pid_t pid = 0;
  pid_t group = 0;
  Node* node = nullptr;
  Owner owner = kNobody;
  ProcessRecord* parent = nullptr;   ///< changes when the parent dies; null: nobody's (init's)
  ProcessRecord* spawner = nullptr;  ///< who holds the handle and hears of it
  ProcessRecord* origin = nullptr;   ///< whom it was forked from: the spawner, or the fork server
  SpawnSpec spec;
  Pages ring;
  /// Shared with the notice being delivered: its callback may destroy the handle, which resets this.
  std::shared_ptr<ProcessEvents> events;
  bool announced = true;                           ///< false: forked for a spawner that has not been told yet
  std::vector<std::function<void()>> unannounced;  ///< what it shall hear once it has been
  std::unique_ptr<SimWorld> own_world;             ///< null for the one of a SimWorld(seed)
  SimWorld* world = nullptr;
  std::unique_ptr<Actor> actor;
  std::map<int, std::shared_ptr<std::function<void()>>> handlers;
  std::vector<int> pending;                   ///< deadly signals that wait for SIGCONT
  std::vector<std::function<void()>> on_end;  ///< the simulation's own

  bool alive = true;
  bool noticed = false;  ///< the spawner has been told of the end
  bool reaped = false;   ///< and has dealt with it: its group can't be signalled any more
  bool subreaper = false;
  bool kill_pending = false;
  Hold holds = 0;
  ExitStatus status;
  Nanos last_notice{};
  std::uint64_t calls = 0;
  std::uint64_t kill_at = ~std::uint64_t{0};
  Nanos io_cost{};  ///< of the disk calls since it was last set to zero
  Nanos cpu{};
  std::optional<Nanos> spinning_since;
};

class ProcessTable {
 public:
  ProcessTable(Cluster& cluster, const SimRandom& random);
  ~ProcessTable();

  void add_program(const std::string& name, ActorFactory factory);
  /// What `argv` runs: the program named "-m MODULE" where it has these words, else the one named argv[0].
  const ActorFactory* program(const std::vector<std::string>& argv) const;

  /// A process that does nothing yet. `group` 0: a group of its own.
  ProcessRecord& add(Node& node, ProcessRecord* parent, SpawnSpec spec, pid_t group = 0);
  /// Runs the program of `spec.argv` in it after `delay`. CHECKs that there is one.
  void start(ProcessRecord& process, Nanos delay);
  /// A main process comes back after a crash, empty.
  void revive(ProcessRecord& process);

  void signal(ProcessRecord& process, int number);
  void signal_group(pid_t group, int number);
  void hold(ProcessRecord& process, Hold why);
  void release(ProcessRecord& process, Hold why);
  void end(ProcessRecord& process, ExitStatus status);
  /// Power failure: gone, and nobody is told.
  void vanish(Node& node);
  /// Dead, without any consequence for others.
  void mark_dead(ProcessRecord& process, ExitStatus status);
  /// One call into the World: counted, the kill asked for done where it is due. False: the process is gone.
  bool enter(ProcessRecord& process);
  /// Tells the spawner, after all that it was told before.
  void notify(ProcessRecord& process, std::function<void(ProcessEvents&)> tell);

  /// The spawner knows the process now; what it missed follows.
  void announce(ProcessRecord& process, ProcessEvents events);

  /// Destroys what the dead left behind. Only between events: the code of the dead may be running in one.
  void bury();

  ProcessRecord* find(pid_t pid);
  std::vector<ProcessRecord*> alive();
  std::vector<ProcessRecord*> children(const ProcessRecord& process);
  SimRandom& random() { return random_; }

 private:
  void kill(ProcessRecord& process);
  void leave_children(ProcessRecord& process);
  void notify_end(ProcessRecord& process);
  /// On the spawner's loop, after all that it was told before.
  void after_notices(ProcessRecord& process, std::function<void()> fn);
  void reap(ProcessRecord& process);
  void run_handler(ProcessRecord& process, int number);

  Cluster& cluster_;  ///< owns this
  SimRandom random_;
  std::map<std::string, ActorFactory> programs_;
  std::vector<std::unique_ptr<ProcessRecord>> processes_;
  std::vector<ProcessRecord*> dead_;
};

}  // namespace holdfast::sim
