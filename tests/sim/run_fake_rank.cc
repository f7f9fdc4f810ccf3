#include "tests/sim/run_fake_rank.h"

#include <algorithm>
#include <csignal>

#include "store/checkpoint.h"
#include "store/checkpoint_id.h"
#include "store/shard.h"

namespace holdfast::trial {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using telemetry::Mark;
using telemetry::Phase;

namespace {

constexpr sim::Delay kWakeUp{milliseconds(1), milliseconds(3)};  // out of a broken collective
constexpr sim::Delay kOptimizer{microseconds(200), milliseconds(2)};
constexpr sim::Delay kCopyToStaging{microseconds(200), milliseconds(1)};
constexpr sim::Delay kGoodbye{milliseconds(6), milliseconds(15)};  // what it sent last is there by then
constexpr sim::Delay kAnswer{microseconds(50), milliseconds(1)};
constexpr std::int64_t kStoreTimeoutMs = 30'000;

const sim::Cluster* stamping = nullptr;
std::int64_t stamp() { return stamping->now().count(); }

}  // namespace

void stamp_marks_by(const sim::Cluster* cluster) { stamping = cluster; }

FakeRank::FakeRank(sim::SimWorld& world, const Training& training)
    : world_(world),
      training_(training),
      oracle_(*training.oracle),
      random_(world.random().next()),
      line_(world, training.order_gap,
            {.connected = [this] { connected(); },
             .message = [this](const run::Message& message) { on_message(message); },
             .gone = [this] { gone(); }}),
      disk_(world.disk()) {
  if (!world.ring().empty()) ring_.emplace(world.ring(), stamp);
}

FakeRank::~FakeRank() {
  if (place_.epoch != 0) oracle_.left(place_);
}

// ---- the native thread ----

void FakeRank::connected() {
  if (world_.env("HOLDFAST_SPARE") == "1") {
    move_to(At::Parked);
    line_.send(run::Park{});
  } else {
    later(training_.setup, [this] { attach(); });
  }
}

// Every wait for the launcher ends with an error, which ends the script. A parked spare just goes.
void FakeRank::gone() { world_.exit(at_ == At::Parked || at_ == At::Leaving ? 0 : 1); }

void FakeRank::on_message(const run::Message& message) {
  std::visit([this](const auto& body) { handle(body); }, message);
}

void FakeRank::handle(const run::Promote&) {
  if (at_ == At::Parked) attach();
}

void FakeRank::handle(const run::Assign& message) {
  if (at_ != At::Attaching) return;
  assign_ = message;
  heard_ = std::max(heard_, message.epoch);
  if (ring_) ring_->epoch(static_cast<std::uint32_t>(heard_));
  if (training_.helpers) world_.fork_helper({"helper"});
  usable_ = !message.replacement;
  state_ = first_state();
  move_to(At::Busy);
  later(training_.setup, [this] { rejoin(); });
}

void FakeRank::handle(const run::Regroup& message) {
  if (message.epoch <= taken_) return;  // it came twice
  if (at_ != At::Gathering) {
    return oracle_.violation("process " + std::to_string(world_.pid()) + " is sent into epoch " +
                             std::to_string(message.epoch) + " without having asked");
  }
  taken_ = message.epoch;
  heard_ = std::max(heard_, message.epoch);
  if (ring_) ring_->epoch(static_cast<std::uint32_t>(heard_));
  plan_ = message;
  if (message.epoch <= aborted_) return rejoin();
  enter();
}

void FakeRank::handle(const run::Abort& message) {
  if (message.epoch <= aborted_) return;
  aborted_ = message.epoch;
  heard_ = std::max(heard_, message.epoch);
  proposal_.reset();
  due_.clear();
  if (place_.epoch == 0 || !broken()) return;
  oracle_.cut(place_);
  if (at_ == At::Boundary) return act_at_boundary(0);
  if (at_ != At::Group && at_ != At::Verdict && at_ != At::Finishing) return;
  move_to(At::Busy);
  later(kWakeUp, [this] { rejoin(); });
}

void FakeRank::handle(const run::Verdict& message) {
  if (at_ == At::Verdict && !message.recover) raise("RuntimeError: the collective failed for good");
}

void FakeRank::handle(const run::Probe& message) {
  if (interpreter_held_) return;
  world_.loop().call_after(random_.draw(kAnswer), [this, id = message.id] {
    line_.send(run::ProbeReply{.id = id, .sequence = sequence_, .stack = "train.py:12 in step"});
  });
}

void FakeRank::handle(const run::Release&) {
  if (at_ != At::Finishing) return;
  oracle_.finished(place_, state_);
  mark(Mark::Finished, state_.applied);
  move_to(At::Leaving);
  later(kGoodbye, [this] { leave(); });
}

void FakeRank::handle(const run::Propose& message) {
  if (message.proposal <= newest_proposal_) return;
  newest_proposal_ = message.proposal;
  const bool accepted = passed_ < message.step && begun_ <= message.step;
  if (accepted) {
    proposal_ = message;
  } else {
    proposal_.reset();
  }
  line_.send(run::Vote{.proposal = message.proposal, .accepted = accepted, .step = std::max(passed_, begun_)});
  if (at_ == At::Boundary) settled(passed_);  // what it waited for was put off
}

void FakeRank::handle(const run::Agreed& message) {
  if (!proposal_ || proposal_->proposal != message.proposal) return;
  due_[proposal_->step] |= proposal_->actions;
  proposal_.reset();
  if (at_ == At::Boundary) settled(passed_);
}

void FakeRank::handle(const run::Act& message) {
  if (message.kind == "disk_full") {
    disk_.arm_full(1);
  } else if (message.kind == "writer_crash") {
    acts_.push_back({.kind = message.kind, .step = 0});
  } else {
    acts_.push_back(message);
  }
}

// ---- the main thread: joining ----

void FakeRank::move_to(At at) {
  at_ = at;
  ++turn_;
}

void FakeRank::attach() {
  move_to(At::Attaching);
  line_.send(run::Attach{});
}

void FakeRank::rejoin() {
  if (place_.epoch != 0) oracle_.left(place_);
  move_to(At::Gathering);
  begun_ = passed_ = kNoStep;
  phase(Phase::Recover);
  line_.send(run::Ready{
      .epoch = std::max(heard_, aborted_), .applied = usable_ ? state_.applied : kNoStep, .round = ++round_});
}

void FakeRank::enter() {
  place_ = {.pid = world_.pid(), .rank = assign_.rank, .epoch = plan_.epoch};
  sequence_ = 0;
  oracle_.joined(place_, {.step = plan_.step, .checkpoint = plan_.checkpoint}, usable_ ? state_.applied : kNoStep);
  mark(Mark::GroupBegin, plan_.step);
  move_to(At::Group);
  exchange_addresses();
}

void FakeRank::exchange_addresses() {
  unanswered_.clear();
  for (Rank rank = 0; rank < assign_.world_size; ++rank) unanswered_.insert(rank);
  run::KvRequest request;
  request.epoch = place_.epoch;
  request.op = run::KvOp::Set;
  request.keys = {"address/" + std::to_string(place_.rank)};
  request.value = Oracle::address_of(place_);
  line_.ask(std::move(request), in_turn([this](const run::KvReply& reply) {
              if (reply.status != run::KvStatus::Ok) return failed("store: epoch is closed");
              for (Rank rank = 0; rank < assign_.world_size; ++rank) ask_address(rank);
            }));
}

void FakeRank::ask_address(Rank rank) {
  const auto answered = [this, rank](const run::KvReply& reply) {
    if (reply.status != run::KvStatus::Ok) return failed("store: no address of rank " + std::to_string(rank));
    const bool stale = training_.planted == Planted::OldAddresses && addresses_.contains(rank);
    if (!stale) addresses_[rank] = reply.value;
    if (unanswered_.erase(rank) == 0) return;
    oracle_.addressed(place_, rank, addresses_[rank]);
    if (unanswered_.empty()) mesh();
  };
  run::KvRequest request;
  request.epoch = place_.epoch;
  request.op = run::KvOp::Get;
  request.keys = {"address/" + std::to_string(rank)};
  request.timeout_ms = kStoreTimeoutMs;
  line_.ask(std::move(request), in_turn(answered));
}

void FakeRank::mesh() {
  oracle_.meet_all(place_, "the mesh", {},
                   when_met(
                       [this](const auto&) {
                         mark(Mark::GroupMade, plan_.step);
                         restore();
                       },
                       "connect"));
}

Oracle::Callbacks FakeRank::when_met(const std::function<void(const std::map<Rank, State>&)>& done,
                                     const std::string& what) {
  const auto mine = in_turn(done);
  Oracle::Callbacks callbacks;
  callbacks.done = mine;
  if (training_.planted == Planted::LateResults) callbacks.done = done;
  callbacks.broken = in_turn([this, what] { failed(what + ": Connection reset by peer"); });
  return callbacks;
}

// Something that needs the group went wrong under its hands: whose fault it was, the launcher knows.
void FakeRank::failed(const std::string& why) {
  if (broken()) {
    move_to(At::Busy);
    later(kWakeUp, [this] { rejoin(); });
    return;
  }
  move_to(At::Verdict);
  line_.send(run::GroupError{.epoch = place_.epoch, .text = why});
}

// ---- the state ----

void FakeRank::restore() {
  mark(Mark::RestoreBegin, plan_.step);
  if (plan_.checkpoint.empty()) return copy(0);
  usable_ = false;
  load();
}

void FakeRank::load() {
  move_to(At::Busy);
  auto result = std::make_shared<Result<State>>(State{});
  world_.loop().background([this, result] { *result = read_checkpoint(); }, [this, result] { loaded(*result); });
}

Result<State> FakeRank::read_checkpoint() {
  const auto checkpoint = TRY(store::load_checkpoint(disk_, plan_.checkpoint), "resume");
  std::optional<State> state;
  for (const store::LoadedTensor& tensor : checkpoint.tensors()) {
    ByteReader in(tensor.bytes);
    State part;
    part.applied = in.get<Step>();
    part.hash = in.get<std::uint64_t>();
    if (state && *state != part) oracle_.violation("shards of different states in " + plan_.checkpoint);
    state = part;
  }
  if (!state) return Error(Code::Corrupt, "no tensor in " + plan_.checkpoint);
  return *state;
}

void FakeRank::loaded(Result<State> state) {
  if (!state) return broken() ? rejoin() : raise("RuntimeError: " + state.error().message());
  state_ = *state;
  usable_ = true;
  in_place();
}

// First what it sends, then what it gets; each copy ends for the two on its own.
void FakeRank::copy(std::size_t index) {
  while (index < plan_.copies.size() && plan_.copies[index].first != place_.rank &&
         plan_.copies[index].second != place_.rank) {
    ++index;
  }
  if (index == plan_.copies.size()) return in_place();
  const auto [source, target] = plan_.copies[index];
  move_to(At::Group);
  const std::string what = "copy " + std::to_string(source) + " to " + std::to_string(target);
  const auto done = [this, index, source = source, target = target](const std::map<Rank, State>& states) {
    if (target == place_.rank) {
      state_ = states.at(source);
      usable_ = true;
    }
    copy(index + 1);
  };
  oracle_.meet(place_, what, {source, target}, state_, when_met(done, what));
}

void FakeRank::in_place() {
  if (broken()) return rejoin();
  oracle_.restored(place_, state_);
  mark(Mark::Restored, plan_.step);
  line_.send(run::Restored{.epoch = place_.epoch, .step = plan_.step});
  phase(Phase::Between);
  next_step();
}

// ---- steps ----

void FakeRank::next_step() {
  move_to(At::Busy);
  if (broken()) return rejoin();
  if (state_.applied == training_.steps) return finish();
  const Step step = state_.applied;
  oracle_.began(place_, step);
  begun_ = step;
  mark(Mark::StepBegin, step);
  if (step == training_.raises_at) return raise("ValueError: no such token");
  if (act_out(step)) return;
  later(training_.compute, [this, step] { reduce(step); });
}

void FakeRank::reduce(Step step) {
  mark(Mark::GradsReady, step);
  ++sequence_;
  if (broken()) return failed("all-reduce");
  move_to(At::Group);
  const auto done = [this, step](const auto&) {
    mark(Mark::Collected, step);
    move_to(At::Busy);
    later(kOptimizer, [this, step] { apply(step); });
  };
  oracle_.meet_all(place_, "step " + std::to_string(step), state_, when_met(done, "all-reduce"));
}

void FakeRank::apply(Step step) {
  state_ = after_step(state_, step);
  oracle_.applied(place_, state_);
  mark(Mark::Applied, step);
  mark(Mark::StepEnd, step);
  boundary(step);
}

void FakeRank::boundary(Step step) {
  passed_ = step;
  if (proposal_ && proposal_->step == step) return move_to(At::Boundary);
  settled(step);
}

void FakeRank::settled(Step step) {
  const auto due = due_.extract(step);
  act_at_boundary(due.empty() ? std::uint8_t{0} : due.mapped());
}

void FakeRank::act_at_boundary(std::uint8_t actions) {
  move_to(At::Busy);
  const bool due = assign_.ckpt_every_steps > 0 && state_.applied % assign_.ckpt_every_steps == 0;
  if ((actions & run::kStop) != 0) {
    const auto stop = [this] {
      move_to(At::Leaving);
      drain([this] { later(kGoodbye, [this] { leave(); }); });
    };
    return drain([this, stop] { save(stop); });
  }
  if (due || (actions & run::kTakeCheckpoint) != 0) return save([this] { next_step(); });
  next_step();
}

void FakeRank::finish() {
  move_to(At::Finishing);
  later(training_.order_gap, [this] { line_.send(run::Finished{.epoch = place_.epoch, .step = state_.applied}); });
}

void FakeRank::leave() {
  oracle_.cut(place_, /*in_order=*/true);
  oracle_.left(place_);
  drain([this] {
    line_.hang_up();
    world_.exit(0);
  });
}

// ---- checkpoints ----

void FakeRank::save(const std::function<void()>& saved) {
  if (writing_) return saved();
  mark(Mark::SnapshotBegin, state_.applied);
  const auto armed =
      std::find_if(acts_.begin(), acts_.end(), [](const auto& act) { return act.kind == "writer_crash"; });
  const bool crash = armed != acts_.end();
  if (crash) acts_.erase(armed);
  writing_ = true;
  later(kCopyToStaging, [this, saved, crash, step = state_.applied, epoch = place_.epoch, state = state_] {
    mark(Mark::SnapshotEnd, step);
    auto done = std::make_shared<run::ShardDone>();
    world_.loop().background(
        [this, done, crash, step, epoch, state] {
          // As FaultyDisk's crash does, which would take the test along.
          if (crash) return world_.signal(SIGSEGV);
          *done = write_shard(step, epoch, state);
        },
        [this, done] {
          line_.send(*done);
          written();
        });
    saved();
  });
}

run::ShardDone FakeRank::write_shard(Step step, Epoch epoch, const State& state) {
  run::ShardDone done;
  done.epoch = epoch;
  done.step = step;
  ByteWriter writer;
  writer.put(state.applied);
  writer.put(state.hash);
  writer.put(epoch);
  Bytes bytes = std::move(writer).take();
  bytes.resize(std::max(training_.state_bytes, bytes.size()), std::byte{7});
  const std::vector<store::TensorData> tensors = {
      {"state of rank " + std::to_string(assign_.rank), "U8", {bytes.size()}, bytes}};
  const std::string dir = assign_.ckpt_dir + "/" + store::checkpoint_name({.epoch = epoch, .step = step});
  const auto record = store::write_shard(disk_, dir, assign_.rank, assign_.world_size, tensors);
  if (!record) {
    done.error = record.error().message();
    return done;
  }
  done.file = record->file;
  done.bytes = record->bytes;
  done.header_crc32c = record->header_crc;
  if (assign_.rank == 0) done.structure = "{}";
  return done;
}

void FakeRank::drain(std::function<void()> drained) {
  if (!writing_) return drained();
  drained_ = in_turn(std::move(drained));
}

void FakeRank::written() {
  writing_ = false;
  if (auto drained = std::exchange(drained_, nullptr)) drained();
}

// ---- faults, and what else there is ----

bool FakeRank::act_out(Step step) {
  const auto due = std::find_if(acts_.begin(), acts_.end(),
                                [&](const run::Act& act) { return act.kind != "writer_crash" && act.step <= step; });
  if (due == acts_.end()) return false;
  interpreter_held_ = due->kind == "spin";
  world_.spin(interpreter_held_);
  move_to(At::Hung);
  return true;
}

void FakeRank::raise(const std::string& error) {
  const std::string path = world_.env("TORCHELASTIC_ERROR_FILE").value_or("");
  if (world_.disk().make_dirs(path.substr(0, path.find_last_of('/')))) {
    (void)world::write_file_atomically(world_.disk(), path, as_bytes(R"({"message": ")" + error + "\"}"));
  }
  world_.exit(1);
}

void FakeRank::mark(Mark mark, Step step) {
  if (ring_) ring_->mark(mark, step);
}

void FakeRank::phase(Phase phase) {
  if (ring_) ring_->phase(phase, state_.applied);
}

}  // namespace holdfast::trial
