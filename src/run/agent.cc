#include "run/agent.h"

#include <csignal>
#include <cstdio>

#include "base/log.h"

namespace holdfast::run {

using telemetry::Bucket;
using telemetry::Mark;
using world::Nanos;

namespace {
constexpr Nanos kTick = std::chrono::milliseconds(10);
constexpr Nanos kStoodStill = std::chrono::milliseconds(500);
constexpr Nanos kCkptRetry = std::chrono::seconds(1);
constexpr Nanos kEndPatience = std::chrono::seconds(5);
constexpr Nanos kCommitPatience = std::chrono::minutes(5);

RunFacts facts_of(const RunOptions& options) {
  return {.run_id = options.run_id,
          .seed = options.seed,
          .ckpt_dir = options.ckpt_dir,
          .ckpt_every_steps = options.ckpt_every_steps};
}

RunRecord begin_record(const RunOptions& options, Nanos now) {
  RunRecord record;
  record.run_id = options.run_id;
  record.world_size = options.policy.world_size;
  record.began_at = now;
  return record;
}
}  // namespace

Agent::Agent(world::World& world, RunOptions options)
    : world_(world),
      options_(std::move(options)),
      coordinator_(options_.policy, facts_of(options_)),
      output_(options_, world.disk()),
      kv_([this](WorkerId worker, const KvReply& reply) { workers_.send(worker, reply); }),
      workers_(world, options_, worker_events()),
      monitor_(world, options_, workers_, coordinator_, monitor_events()),
      committer_(world, options_, committer_events()),
      injector_(world, options_, workers_, coordinator_, [this] { return committer_.newest_directory(); }),
      record_(begin_record(options_, world.clock().steady())),
      ledger_(record_.began_at) {}

Agent::~Agent() = default;

Status Agent::start() {
  const Epoch before = TRY(committer_.highest_epoch(), "checkpoints in " + options_.ckpt_dir);
  (void)TRY(workers_.start(), "start");
  carry_out(coordinator_.start(now(), before));
  if (options_.ckpt_every > Nanos{0}) last_ckpt_wanted_at_ = now();
  world_.loop().call_after(kTick, [this] { tick(); });
  return Ok{};
}

WorkerEvents Agent::worker_events() {
  WorkerEvents events;
  events.on_message = [this](WorkerId worker, const Message& message) { on_message(worker, message); };
  events.on_exit = [this](WorkerId worker, world::ExitStatus status, const std::string& error) {
    if (ended_) return;
    kv_.forget(worker);
    monitor_.poll();
    carry_out(coordinator_.on_exit(now(), worker, status, error));
  };
  events.on_stop_change = [](WorkerId, bool) {};
  events.on_output = [this](WorkerId worker, world::Stream stream, BytesView chunk) {
    const auto rank = spare_ranks_.find(worker);
    output_.write(rank == spare_ranks_.end() ? Output::kNoRank : rank->second, coordinator_.restarts(), stream, chunk);
  };
  events.on_note = [](const std::string& line) { log_warn(line); };
  return events;
}

MonitorEvents Agent::monitor_events() {
  MonitorEvents events;
  events.on_mark = [this](Rank rank, const telemetry::Event& event) { on_mark(rank, event); };
  events.on_step_done = [this](Step step, Nanos at) { on_step_done(step, at); };
  events.on_hang = [this](const telemetry::HangVerdict& verdict) { on_hang(verdict); };
  events.on_slow = [this](const telemetry::SlowRank& slow) { on_slow(slow); };
  return events;
}

CommitterEvents Agent::committer_events() {
  CommitterEvents events;
  events.on_committed = [this](Step step, const std::string& directory) {
    committed_ = step;
    log_info("checkpoint of step " + std::to_string(step) + " committed: " + directory);
  };
  events.on_failed = [this](Step step, std::optional<Rank> rank, const std::string& why) {
    on_checkpoint_failed(step, rank, why);
  };
  events.on_note = [](const std::string& line) { log_warn(line); };
  return events;
}

void Agent::carry_out(const Coordinator::Actions& actions) {
  for (const Action& action : actions) {
    if (ended_) return;
    std::visit([this](const auto& each) { act(each); }, action);
  }
}

void Agent::act(const SpawnRank& action) {
  spare_ranks_[action.worker] = action.rank;
  workers_.spawn(action.worker, action.rank, action.restart_count);
}

void Agent::act(const SpawnSpare& action) { workers_.spawn(action.worker, std::nullopt, coordinator_.restarts()); }

void Agent::act(const PromoteSpare& action) {
  spare_ranks_[action.worker] = action.rank;
  workers_.send(action.worker, Promote{.env = workers_.rank_env_of(action.rank, coordinator_.restarts())});
}

void Agent::act(const EndWorker& action) { workers_.signal_group(action.worker, action.kill ? SIGKILL : SIGTERM); }

void Agent::act(const SendTo& action) {
  if (const auto* regroup = std::get_if<Regroup>(&action.message)) {
    // Sent to each rank in turn; the first time counts.
    if (coordinator_.worker_of(0) == action.worker) {
      // Steps that only the furthest ranks had applied are done by all once the laggards have copied them.
      for (Step step = monitor_.all_done() + 1; started_once_ && step < regroup->step; ++step) ledger_.step_done(step);
      monitor_.regrouped(regroup->step);
      if (!started_once_) record_.first_step = regroup->step;
      started_once_ = true;
      ledger_.roll_back(regroup->step);
      redo_until_ = begun_;
      group_begun_ = regroup->step - 1;
    }
  }
  workers_.send(action.worker, action.message);
}

void Agent::act(const OpenEpoch& action) {
  kv_.open(action.epoch);
  committer_.open_epoch(action.epoch);
  agreement_.abandon();
}

void Agent::act(const FindCheckpoint&) {
  committer_.find([this](const Committer::Found& found) { on_checkpoint_found(found); });
}

void Agent::on_checkpoint_found(const Committer::Found& found) {
  if (ended_) return;
  for (const store::PassedOver& each : found.passed_over) {
    if (each.code == Code::NotFound) continue;  // never committed: an abandoned one, not a damaged one
    record_.passed_over.push_back({each.checkpoint, each.why});
    log_warn("passed over checkpoint " + each.checkpoint + ": " + each.why);
    carry_out(coordinator_.record(now(), FaultKind::CkptDamaged, {},
                                  "checkpoint " + each.checkpoint + " does not verify", each.why));
  }
  committed_ = found.step;
  if (found.step != kNoStep) log_info("resuming from " + found.directory);
  carry_out(coordinator_.on_checkpoint(now(), found.step, found.directory));
}

void Agent::act(const EnterMode& action) {
  const Nanos at = now();
  switch (action.mode) {
    case Mode::Starting: ledger_.enter(coordinator_.restarts() > 0 ? Bucket::Recover : Bucket::Start, at); break;
    case Mode::Running:
      ledger_.enter(redo_until_ > monitor_.all_done() ? Bucket::Redo : Bucket::Train, at);
      retake_checkpoint();
      break;
    case Mode::Recovering:
    case Mode::Restoring:
    case Mode::Restarting:
      if (ledger_.now_in() != Bucket::Start) ledger_.enter(Bucket::Recover, at);
      break;
    case Mode::After:
    case Mode::Ended: ledger_.enter(Bucket::Stop, at); break;
  }
  injector_.on_mode(action.mode);
}

// A checkpoint that was due and is not there died with a rank; the next one may be a whole interval away.
void Agent::retake_checkpoint() {
  const Step every = options_.ckpt_every_steps;
  if (every <= 0) return;
  const Step due = (monitor_.all_done() + 1) / every * every;
  if (due > std::max(committed_, Step{0})) agreement_.want(kTakeCheckpoint);
}

void Agent::act(const FaultOpened& action) {
  const Fault& fault = coordinator_.faults()[static_cast<std::size_t>(action.id)];
  const bool costs = fault.kind != FaultKind::CkptFailed && fault.kind != FaultKind::CkptDamaged;
  const Bucket bucket = ledger_.now_in();
  const bool working = bucket == Bucket::Train || bucket == Bucket::Redo || bucket == Bucket::Checkpoint;
  if (costs && working && step_done_at_) ledger_.reclassify_since(*step_done_at_, Bucket::Detect);
  log_warn(fault_line(fault, began_at(action.id)));
}

void Agent::act(const FaultClosed& action) {
  const Fault& fault = coordinator_.faults()[static_cast<std::size_t>(action.id)];
  if (fault.first_step_at) log_info("recovered: " + fault_line(fault, began_at(action.id)));
}

std::optional<Nanos> Agent::began_at(int fault_id) const {
  const RunRecord known = record();
  for (std::size_t index = 0; index < known.injected.size(); ++index) {
    for (std::size_t answer : answering_faults(known, index)) {
      if (known.faults[answer].id == fault_id) return known.injected[index].began_at;
    }
  }
  return std::nullopt;
}

void Agent::act(const EndRun& action) {
  const bool good = action.exit_code == kExitDone || action.exit_code == kExitTryLater;
  end_once_committed(action.exit_code, action.why, now() + (good ? kCommitPatience : Nanos{0}));
}

// The shards of the last checkpoint may still be on their way into a commit.
void Agent::end_once_committed(int exit_code, const std::string& why, Nanos until) {
  if (committer_.idle() || now() >= until) return end(exit_code, why);
  world_.loop().call_after(kTick, [this, exit_code, why, until] { end_once_committed(exit_code, why, until); });
}

void Agent::on_message(WorkerId worker, const Message& message) {
  if (ended_) return;
  if (const auto* request = std::get_if<KvRequest>(&message)) return kv_.serve(now(), worker, *request);
  if (const auto* reply = std::get_if<ProbeReply>(&message)) return monitor_.on_probe_reply(worker, *reply);
  if (const auto* vote = std::get_if<Vote>(&message)) return on_vote(worker, *vote);
  if (const auto* shard = std::get_if<ShardDone>(&message)) {
    if (const auto rank = coordinator_.rank_of(worker)) committer_.on_shard(*rank, *shard);
    return;
  }
  // The marks of the last step count while the loop is still on.
  if (std::holds_alternative<Finished>(message)) monitor_.poll();
  carry_out(coordinator_.on_message(now(), worker, message));
}

void Agent::on_vote(WorkerId worker, const Vote& vote) {
  const auto rank = coordinator_.rank_of(worker);
  if (!rank) return;
  const std::uint8_t wanted = agreement_.wanted();
  const Agreement::Outcome outcome = agreement_.vote(*rank, vote);
  if (outcome.again) send_to_ranks(*outcome.again);
  if (!outcome.agreed) return;
  if ((wanted & kStop) != 0) coordinator_.stop(kExitTryLater);
  send_to_ranks(*outcome.agreed);
}

void Agent::on_mark(Rank rank, const telemetry::Event& event) {
  if (event.mark == Mark::StepBegin) {
    coordinator_.on_step_begun(event.step);
    if (event.step > group_begun_) ledger_.step_begin(event.step);
    group_begun_ = std::max(group_begun_, event.step);
    begun_ = std::max(begun_, event.step);
  }
  if (rank == 0 && coordinator_.mode() == Mode::Running) {
    if (event.mark == Mark::SnapshotBegin) ledger_.enter(Bucket::Checkpoint, Nanos(event.time_ns));
    if (event.mark == Mark::SnapshotEnd && ledger_.now_in() == Bucket::Checkpoint) {
      ledger_.enter(redo_until_ > monitor_.all_done() ? Bucket::Redo : Bucket::Train, Nanos(event.time_ns));
    }
  }
  injector_.on_mark(rank, event);
}

void Agent::on_step_done(Step step, Nanos at) {
  ledger_.step_done(step);
  if (step >= redo_until_ && ledger_.now_in() == Bucket::Redo) ledger_.enter(Bucket::Train, at);
  step_done_at_ = at;
  coordinator_.set_rejoin_patience(std::max<Nanos>(options_.policy.rejoin_patience, monitor_.train_deadline()));
  carry_out(coordinator_.on_step_done(at, step));
}

void Agent::on_hang(const telemetry::HangVerdict& verdict) {
  FaultKind kind = FaultKind::Hung;
  if (verdict.word == fault_word(FaultKind::Stopped)) kind = FaultKind::Stopped;
  if (verdict.word == fault_word(FaultKind::GilHeld)) kind = FaultKind::GilHeld;
  const std::string first_line = verdict.text.substr(0, verdict.text.find('\n'));
  carry_out(coordinator_.condemn(now(), kind, verdict.ranks, first_line, verdict.text));
}

void Agent::on_slow(const telemetry::SlowRank& slow) {
  char seen[96];
  std::snprintf(seen, sizeof seen, "%.1f times the median's own work per step", slow.slowdown);
  if (options_.replace_slow) {
    carry_out(coordinator_.condemn(now(), FaultKind::Slow, {slow.rank}, seen, ""));
  } else {
    carry_out(coordinator_.record(now(), FaultKind::Slow, {slow.rank}, seen,
                                  "reported only; --slow-ranks=replace replaces it"));
  }
}

void Agent::on_checkpoint_failed(Step step, std::optional<Rank> rank, const std::string& why) {
  if (ended_) return;
  std::vector<Rank> culprits;
  if (rank) culprits.push_back(*rank);
  carry_out(coordinator_.record(now(), FaultKind::CkptFailed, culprits,
                                "checkpoint of step " + std::to_string(step) + " was not written; training goes on",
                                why));
  world_.loop().call_after(kCkptRetry, [this] { agreement_.want(kTakeCheckpoint); });
}

void Agent::tick() {
  if (ended_) return;
  const Nanos since_last = now() - ticked_at_.value_or(now());
  if (since_last > kStoodStill) {
    coordinator_.stood_still(since_last);
    monitor_.stood_still();
  }
  ticked_at_ = now();
  monitor_.poll();
  monitor_.judge();
  kv_.tick(now());
  if (last_ckpt_wanted_at_ && now() - *last_ckpt_wanted_at_ >= options_.ckpt_every) {
    last_ckpt_wanted_at_ = now();
    agreement_.want(kTakeCheckpoint);
  }
  propose_boundary();
  carry_out(coordinator_.tick(now()));
  if (!ended_) world_.loop().call_after(kTick, [this] { tick(); });
}

void Agent::propose_boundary() {
  if (coordinator_.mode() != Mode::Running) return;
  if (const auto proposal = agreement_.propose(options_.policy.world_size, begun_)) send_to_ranks(*proposal);
}

void Agent::send_to_ranks(const Message& message) {
  for (Rank rank = 0; rank < options_.policy.world_size; ++rank) {
    if (const auto worker = coordinator_.worker_of(rank)) workers_.send(*worker, message);
  }
}

void Agent::signal_ranks(int number) {
  for (Rank rank = 0; rank < options_.policy.world_size; ++rank) {
    if (const auto worker = coordinator_.worker_of(rank)) workers_.signal_group(*worker, number);
  }
}

void Agent::request_stop(const std::string& why) {
  if (ended_) return;
  if (stop_asked_) return end(kExitTryLater, why + " again: stopped at once");
  stop_asked_ = true;
  const bool at_boundary = coordinator_.uses_api() && coordinator_.mode() != Mode::Starting;
  log_info(why + ": stopping " + (at_boundary ? "at the next step boundary, with a checkpoint" : "by SIGTERM"));
  if (at_boundary) {
    agreement_.want(kStop | kTakeCheckpoint);
  } else {
    coordinator_.stop(kExitTryLater);
    signal_ranks(SIGTERM);
  }
  world_.loop().call_after(options_.grace,
                           [this] { end(kExitTryLater, "the grace is over: stopped without waiting any longer"); });
}

void Agent::end(int exit_code, const std::string& why) {
  if (ended_) return;
  monitor_.poll();
  ended_ = true;
  record_.exit_code = exit_code;
  record_.why = why;
  const std::vector<pid_t> left = workers_.end_all(kEndPatience);
  for (pid_t pid : left) log_error("process " + std::to_string(pid) + " would not die and is given up");
  output_.flush();
  record_.ended_at = now();
  for (const Fault& fault : coordinator_.faults()) {
    if (exit_code == kExitFailed && fault.kind == FaultKind::UserError) {
      print_error(fault);
      break;
    }
  }
  if (exit_code != kExitDone) log_error(why);
  if (!options_.report_path.empty()) write_report();
  world_.loop().stop();
}

void Agent::print_error(const Fault& fault) const {
  options_.print(world::Stream::Err, fault.evidence + "\n");
  log_error(fault_line(fault, std::nullopt));
}

RunRecord Agent::record() const {
  RunRecord record = record_;
  const Nanos at = ended_ ? record_.ended_at : world_.clock().steady();
  record.ended_at = at;
  record.goodput = ledger_.totals(at);
  record.ettr = ledger_.ettr(at);
  record.steps = monitor_.all_done() + 1;
  record.steps_lost = ledger_.steps_lost(record_.first_step, record.steps);
  record.steps_redone = ledger_.steps_redone();
  record.epochs = coordinator_.epoch();
  record.restarts = coordinator_.restarts();
  record.faults = coordinator_.faults();
  record.injected = injector_.faults();
  return record;
}

void Agent::write_report() {
  const Status written =
      world::write_file_atomically(world_.disk(), options_.report_path, as_bytes(report_json(record())));
  if (!written) log_error("report: " + written.error().message());
}

}  // namespace holdfast::run
