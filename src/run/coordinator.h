// Who is which rank in which epoch, and what happens when one is lost. Pure: events and the time in, actions out.
//
// In place: survivors keep their processes. The epoch grows, the culprits are killed (fenced), spares take their
// numbers, everyone reports the last step it applied, laggards copy the furthest rank, and the step in flight runs
// again. Where that can't be (plain scripts, a survivor outside the step loop) all ranks start again from the newest
// checkpoint.
#pragma once

#include <functional>
#include <set>
#include <variant>

#include "run/fault.h"
#include "run/messages.h"
#include "world/processes.h"

namespace holdfast::run {

constexpr int kExitDone = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int kExitTryLater = 75;
constexpr int kExitDoNotRequeue = 93;

struct CoordinatorPolicy {
  std::uint32_t world_size = 1;
  std::uint32_t spares = 1;
  int max_restarts = 3;            ///< starts of all ranks after the first
  int tries_without_progress = 3;  ///< recoveries and restarts in a row without one new step done by all
  world::Nanos start_patience = std::chrono::minutes(10);       ///< spawn or replacement to the step loop
  world::Nanos rejoin_patience = std::chrono::seconds(30);      ///< abort to a survivor's report
  world::Nanos group_error_patience = std::chrono::seconds(1);  ///< failed collective to the fault that explains it
  world::Nanos kill_patience = std::chrono::seconds(5);         ///< SIGKILL to exit
  world::Nanos restart_grace = std::chrono::seconds(5);         ///< SIGTERM to SIGKILL for healthy plain ranks
  world::Nanos exit_patience = std::chrono::seconds(10);        ///< an error of the script to the end of its process
};

// Actions, to be carried out in order.
struct SpawnRank {
  WorkerId worker;
  Rank rank;
  bool replacement;
  int restart_count;
};
struct SpawnSpare {
  WorkerId worker;
};
struct PromoteSpare {
  WorkerId worker;
  Rank rank;
};
struct EndWorker {
  WorkerId worker;
  bool kill;  ///< SIGKILL to its process group; else SIGTERM
};
struct SendTo {
  WorkerId worker;
  Message message;
};
struct OpenEpoch {
  Epoch epoch;
};
/// Look for the newest whole checkpoint and report it by `on_checkpoint`.
struct FindCheckpoint {};
enum class Mode : std::uint8_t {
  Starting,    ///< ranks come up and meet before the step loop
  Running,     ///< all in the step loop of one epoch
  Recovering,  ///< survivors and replacements gather
  Restoring,   ///< the new group is being made and the state put in place
  Restarting,  ///< everything is being killed to start again
  After,       ///< the loop is over
  Ended,
};
struct EnterMode {
  Mode mode;
};
struct FaultOpened {
  int id;
};
/// All of the fault's times are known, or it was overtaken.
struct FaultClosed {
  int id;
};
struct EndRun {
  int exit_code;
  std::string why;
};
using Action = std::variant<SpawnRank, SpawnSpare, PromoteSpare, EndWorker, SendTo, OpenEpoch, FindCheckpoint,
                            EnterMode, FaultOpened, FaultClosed, EndRun>;

/// What every rank gets told at its start besides its place.
struct RunFacts {
  std::string run_id;
  std::int64_t seed = 0;
  std::string ckpt_dir;
  std::int64_t ckpt_every_steps = 0;
};

class Coordinator {
 public:
  Coordinator(CoordinatorPolicy policy, RunFacts facts);

  using Actions = std::vector<Action>;
  /// `before`: the newest epoch that anyone used before this run; ours begin above it.
  Actions start(world::Nanos now, Epoch before = 0);
  Actions on_message(world::Nanos now, WorkerId worker, const Message& message);
  /// `error` is the traceback the script left, "" where there is none.
  Actions on_exit(world::Nanos now, WorkerId worker, world::ExitStatus status, const std::string& error);
  /// A judge's verdict on ranks that have not exited.
  Actions condemn(world::Nanos now, FaultKind kind, const std::vector<Rank>& culprits, const std::string& seen,
                  const std::string& evidence);
  /// A fault that asks for no recovery (a failed or damaged checkpoint, a slow rank that is only reported).
  Actions record(world::Nanos now, FaultKind kind, const std::vector<Rank>& culprits, const std::string& seen,
                 const std::string& evidence);
  /// The newest whole checkpoint: `step` steps applied in `directory`; kNoStep where there is none.
  Actions on_checkpoint(world::Nanos now, Step step, const std::string& directory);
  /// Every rank has completed `step`, at `at`.
  Actions on_step_done(world::Nanos at, Step step);
  /// The newest step that any rank has begun.
  void on_step_begun(Step step);
  /// From now on exits are wanted: the run ends with `exit_code` once every rank is gone.
  void stop(int exit_code);
  Actions tick(world::Nanos now);
  /// This process got no CPU for so long: nobody was late meanwhile.
  void stood_still(world::Nanos how_long);
  /// How long a survivor may take from an abort to its report: as long as a step may last.
  void set_rejoin_patience(world::Nanos patience);

  Mode mode() const { return mode_; }
  Epoch epoch() const { return epoch_; }
  /// The script of `rank` raised an error: the process is on its way out, whatever it seems to do.
  bool failing(Rank rank) const { return slots_[rank].failed_at.has_value(); }
  /// Ranks may end: the loop is over, or a stop was agreed.
  bool leaving() const { return mode_ == Mode::After || stop_code_.has_value(); }
  bool uses_api() const { return api_; }
  int restarts() const { return restarts_; }
  const std::vector<Fault>& faults() const { return faults_; }
  std::optional<WorkerId> worker_of(Rank rank) const;
  std::optional<Rank> rank_of(WorkerId worker) const;
  /// `rank` has come to a point where it waits for all others.
  bool waits(Rank rank) const { return slots_[rank].place == Place::Waiting || slots_[rank].place == Place::Finished; }
  const CoordinatorPolicy& policy() const { return policy_; }

 private:
  enum class Place : std::uint8_t {
    Empty,
    Starting,
    Setup,
    Aborted,
    Waiting,
    Restoring,
    InLoop,
    Finished,
    After,
    Left
  };
  struct Slot {
    WorkerId worker = 0;
    Place place = Place::Empty;
    bool replacement = false;
    Step applied = kNoStep;
    world::Nanos since{};
    std::optional<world::Nanos> failed_at = {};  // its script raised an error; it is on its way out
    std::string error = {};
  };
  struct Spare {
    bool parked = false;
  };
  struct Fence {
    world::Nanos since{};
    bool killed = false;
  };

  void handle(world::Nanos now, WorkerId worker, const Attach& message);
  void handle(world::Nanos now, WorkerId worker, const Park& message);
  void handle(world::Nanos now, WorkerId worker, const Ready& message);
  void handle(world::Nanos now, WorkerId worker, const Restored& message);
  void handle(world::Nanos now, WorkerId worker, const GroupError& message);
  void handle(world::Nanos now, WorkerId worker, const Finished& message);
  void handle(world::Nanos now, WorkerId worker, const Failed& message);
  template <typename Other>
  void handle(world::Nanos, WorkerId, const Other&) {}

  Fault& open_fault(world::Nanos now, FaultKind kind, const std::vector<Rank>& culprits, const std::string& seen,
                    const std::string& evidence);
  void recover(world::Nanos now, const Fault& fault);
  bool recoverable_in_place(const std::vector<Rank>& culprits) const;
  void recover_in_place(world::Nanos now, const std::vector<Rank>& culprits, const std::string& reason);
  void restart_all(world::Nanos now, const std::vector<Rank>& culprits);
  void spawn_all(world::Nanos now);
  void replace(world::Nanos now, Rank rank);
  void fill_spares();
  void end_worker(world::Nanos now, WorkerId worker, bool kill);
  void try_regroup(world::Nanos now);
  void send_regroup(world::Nanos now, Step step, const std::string& checkpoint);
  void lost_replacement_counts(const std::vector<Rank>& culprits);
  void end_if_some_left_early();
  bool repeated_user_error(const Fault& fault);
  bool count_try(const std::string& what);
  void close_open_faults(world::Nanos now, std::optional<world::Nanos> Fault::* phase);
  void enter(Mode mode);
  void end_run(int exit_code, const std::string& why);
  void tick_fences(world::Nanos now);
  void tick_gathering(world::Nanos now);
  void tick_failing(world::Nanos now);
  bool all(Place place) const;
  Slot* slot_of(WorkerId worker);
  Actions take();

  CoordinatorPolicy policy_;
  RunFacts facts_;
  Mode mode_ = Mode::Starting;
  Epoch epoch_ = 0;
  bool api_ = false;
  int restarts_ = 0;
  int tries_ = 0;
  Step best_done_ = kNoStep;   // newest step that all ranks completed
  Step best_begun_ = kNoStep;  // newest step that any rank began
  Step loaded_ = kNoStep;      // of the checkpoint that a group was last told to load, 0 where it began without
  WorkerId next_worker_ = 1;
  std::vector<Slot> slots_;
  std::map<WorkerId, Spare> spares_;
  std::map<WorkerId, Fence> fences_;  // told to end, not yet gone
  std::map<WorkerId, std::uint64_t> rounds_;
  std::optional<world::Nanos> group_error_since_;
  std::string group_error_text_;
  std::vector<Fault> faults_;
  std::set<int> open_;  // faults whose recovery is under way
  bool finding_checkpoint_ = false;
  std::optional<int> stop_code_;
  std::string last_user_error_;
  Step last_user_error_best_ = kNoStep;
  Actions actions_;
};

}  // namespace holdfast::run
