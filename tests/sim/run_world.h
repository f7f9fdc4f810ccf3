// A simulated machine with a launcher on it, the real run::Agent, whose ranks are FakeRanks.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "run/agent.h"
#include "sim/sim_world.h"
#include "tests/sim/run_fake_rank.h"
#include "tests/sim/run_oracle.h"

namespace holdfast::trial {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

struct RunSetup {
  run::RunOptions options;
  Training training;
};
/// Patient where a test is not about patience: any number of restarts, of tries without progress 40.
RunSetup usual_setup(sim::SimRandom& random);

class RunWorld {
 public:
  RunWorld(std::uint64_t seed, RunSetup setup);
  ~RunWorld();

  sim::Cluster& cluster() { return cluster_; }
  sim::Node& node() { return cluster_.node("machine"); }
  Oracle& oracle() { return oracle_; }
  const RunSetup& setup() const { return setup_; }

  /// A launcher with these options, on the same checkpoint directory as those before it.
  void launch();
  /// Until the launcher is gone, however. `each_event` runs between events. False: it never ends.
  bool run(const std::function<void()>& each_event = {});
  sim::SimWorld& launcher() { return *launcher_; }
  /// The launcher's insides, while it lives.
  run::Agent* agent() { return agent_; }
  /// What the launcher said at its end; none where it was killed.
  const std::optional<run::RunRecord>& record() const { return record_; }
  int exit_code() const { return launcher_->exit_status().code; }

  // Live processes.
  std::vector<pid_t> ranks();
  std::vector<pid_t> spares();
  std::vector<pid_t> running(const std::string& program);

  /// Gives what is left two seconds, then: nobody is alive, every checkpoint is whole, the ledger adds up.
  void check_end();
  /// The end of a run whose faults left it a way.
  void check_success();
  /// Looks at the checkpoints that lie on the disk now.
  void look_at_disk();
  /// The steps of those it saw last.
  std::set<Step> committed() const;

 private:
  friend class LauncherActor;
  void add_programs();
  void check_checkpoints();
  void check_record();

  RunSetup setup_;
  sim::Cluster cluster_;
  Oracle oracle_;
  sim::SimWorld* launcher_ = nullptr;
  run::Agent* agent_ = nullptr;
  std::optional<run::RunRecord> record_;
  int launches_ = 0;
  std::uint64_t looked_at_ = 0;
};

/// Standard error goes nowhere while it lives, unless a single seed is replayed: a thousand runs warn of every fault.
class Quiet {
 public:
  Quiet();
  ~Quiet();
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  int kept_ = -1;
};

}  // namespace holdfast::trial
