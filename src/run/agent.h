// Runs one job on one machine: carries out what the coordinator decides, feeds it what happens.
#pragma once

#include <memory>
#include <set>

#include "run/agreement.h"
#include "run/committer.h"
#include "run/coordinator.h"
#include "run/injector.h"
#include "run/kv_store.h"
#include "run/monitor.h"
#include "run/options.h"
#include "run/output.h"
#include "run/report.h"
#include "run/workers.h"
#include "telemetry/goodput.h"

namespace holdfast::run {

class Agent {
 public:
  /// `world` outlives this object.
  Agent(world::World& world, RunOptions options);
  ~Agent();
  /// Starts the job; the loop does the rest and is stopped when the job has ended. Errors: the listener or the
  /// checkpoint directory can't be had.
  Status start();
  bool ended() const { return ended_; }
  int exit_code() const { return record_.exit_code; }
  RunRecord record() const;
  const Coordinator& coordinator() const { return coordinator_; }
  /// Ends in good order: at a step boundary with a checkpoint where the script uses the API, else by SIGTERM; SIGKILL
  /// after the grace. Asked again: at once.
  void request_stop(const std::string& why);

 private:
  WorkerEvents worker_events();
  MonitorEvents monitor_events();
  CommitterEvents committer_events();
  void carry_out(const Coordinator::Actions& actions);
  void act(const SpawnRank& action);
  void act(const SpawnSpare& action);
  void act(const PromoteSpare& action);
  void act(const EndWorker& action);
  void act(const SendTo& action);
  void act(const OpenEpoch& action);
  void act(const FindCheckpoint& action);
  void act(const EnterMode& action);
  void act(const FaultOpened& action);
  void act(const FaultClosed& action);
  void act(const EndRun& action);

  void on_message(WorkerId worker, const Message& message);
  void on_vote(WorkerId worker, const Vote& vote);
  void on_mark(Rank rank, const telemetry::Event& event);
  void on_step_done(Step step, world::Nanos at);
  void on_hang(const telemetry::HangVerdict& verdict);
  void on_slow(const telemetry::SlowRank& slow);
  void on_checkpoint_failed(Step step, std::optional<Rank> rank, const std::string& why);
  void on_checkpoint_found(const Committer::Found& found);
  void tick();
  void propose_boundary();
  void retake_checkpoint();
  void send_to_ranks(const Message& message);
  void signal_ranks(int number);
  void end_once_committed(int exit_code, const std::string& why, world::Nanos until);
  void end(int exit_code, const std::string& why);
  void write_report();
  void print_error(const Fault& fault) const;
  std::optional<world::Nanos> began_at(int fault_id) const;
  world::Nanos now() { return world_.clock().steady(); }

  world::World& world_;
  const RunOptions options_;
  Coordinator coordinator_;
  Output output_;
  KvStore kv_;
  Workers workers_;
  Monitor monitor_;
  Committer committer_;
  Injector injector_;
  Agreement agreement_;
  RunRecord record_;
  telemetry::Ledger ledger_;  // begins with the record
  bool started_once_ = false;
  bool ended_ = false;
  bool stop_asked_ = false;
  Step redo_until_ = kNoStep;  // steps up to here had been begun before the last fault
  Step begun_ = kNoStep;
  std::optional<world::Nanos> step_done_at_;
  Step group_begun_ = kNoStep;  // newest step begun in this group
  std::optional<world::Nanos> last_ckpt_wanted_at_;
  Step committed_ = kNoStep;  // by this history's newest checkpoint
  std::optional<world::Nanos> ticked_at_;
  std::map<WorkerId, Rank> spare_ranks_;  // rank a worker's output belongs to
};

}  // namespace holdfast::run
