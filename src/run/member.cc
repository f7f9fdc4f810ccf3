#include "run/member.h"

#include <algorithm>

#include "run/version.h"
#include "store/background.h"
#include "store/checkpoint_id.h"
#include "store/shard.h"

namespace holdfast::run {

using world::Nanos;

namespace {
constexpr Nanos kBeatEvery = std::chrono::milliseconds(200);
}

Member::Member(world::World& world, MemberOptions options)
    : world_(world), options_(std::move(options)), disk_(world.disk()) {
  if (!options_.ring.empty()) ring_.emplace(options_.ring);
}

Member::~Member() = default;

template <typename Ready>
bool Member::wait(std::unique_lock<std::mutex>& lock, Ready ready) {
  changed_.wait(lock, [&] { return gone_ || ready(); });
  return ready();
}

Status Member::connect(Nanos patience) {
  world_.loop().post([this, patience] {
    world_.net().connect(options_.address, options_.secret, patience,
                         [this](Result<std::unique_ptr<world::Connection>> made) {
                           const std::lock_guard lock(mutex_);
                           if (!made) {
                             gone_ = true;
                             gone_why_ = made.error().message();
                           } else {
                             connection_ = *std::move(made);
                             connection_->on_message([this](BytesView bytes) { on_message(bytes); });
                             connection_->on_close([this](const std::string& why) {
                               const std::lock_guard inner(mutex_);
                               gone_ = true;
                               gone_why_ = why;
                               changed_.notify_all();
                             });
                             connection_->send(encode(Hello{.worker = options_.worker, .version = kVersion}));
                             connected_ = true;
                             beat();
                           }
                           changed_.notify_all();
                         });
  });
  std::unique_lock lock(mutex_);
  if (!wait(lock, [&] { return connected_; })) return Error(Code::Unavailable, "connect to the agent: " + gone_why_);
  return Ok{};
}

void Member::beat() {
  if (!connection_) return;
  connection_->send(encode(Heartbeat{}));
  world_.loop().call_after(kBeatEvery, [this] { beat(); });
}

void Member::leave() {
  drain();
  world_.loop().post([this] {
    if (connection_) connection_->close();
    connection_.reset();
    const std::lock_guard lock(mutex_);
    left_ = true;
    changed_.notify_all();
  });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return left_; });
}

void Member::send(Message message) {
  world_.loop().post([this, bytes = encode(std::move(message))] {
    if (connection_) connection_->send(bytes);
  });
}

void Member::on_message(BytesView bytes) {
  auto message = decode(bytes);
  if (!message) return;
  const std::lock_guard lock(mutex_);
  std::visit([this](const auto& body) { handle(body); }, *message);
  changed_.notify_all();
}

void Member::handle(const Promote& message) { promote_ = message; }

void Member::handle(const Assign& message) {
  assign_ = message;
  epoch_ = message.epoch;
  if (ring_) ring_->epoch(static_cast<std::uint32_t>(message.epoch));
}

void Member::handle(const Regroup& message) {
  regroup_ = message;
  epoch_ = message.epoch;
  if (ring_) ring_->epoch(static_cast<std::uint32_t>(message.epoch));
}

void Member::handle(const Abort& message) {
  if (message.epoch <= aborted_.load()) return;
  aborted_.store(message.epoch);
  break_group();
  proposal_.reset();
  due_.clear();
  proposed_.store(false);
}

// Also while the group is being made: then everything opened since the making began is part of it.
void Member::break_group() {
  if (making_group_) group_ = world::opened_since(before_group_, world::open_tcp_sockets());
  world::break_sockets(group_);
  if (options_.on_break) options_.on_break();
}

void Member::handle(const Verdict& message) { verdict_ = message.recover; }

void Member::handle(const KvReply& message) {
  if (const auto found = kv_.find(message.id); found != kv_.end()) found->second = message;
}

void Member::handle(const Probe& message) {
  if (options_.on_probe) options_.on_probe(message.id);
}

void Member::handle(const Release&) { released_ = true; }

void Member::handle(const Propose& message) {
  proposal_ = message;
  // The main thread first notes the step it has come past and then looks for a proposal; here the other way round. So
  // one of the two always sees the other.
  proposed_.store(true);
  const Step past = passed_.load();
  const bool accepted = past < message.step && begun_.load() <= message.step;
  if (!accepted) {
    proposal_.reset();
    proposed_.store(!due_.empty());
  }
  send(Vote{.proposal = message.proposal, .accepted = accepted, .step = std::max(past, begun_.load())});
}

// Kept apart from proposals: the next one may come before this rank is at the step agreed on.
void Member::handle(const Agreed& message) {
  if (!proposal_ || proposal_->proposal != message.proposal) return;
  due_[proposal_->step] |= proposal_->actions;
  proposal_.reset();
}

void Member::handle(const Act& message) {
  if (message.kind == "disk_full") {
    disk_.arm_full(1);
  } else if (message.kind == "writer_crash") {
    disk_.arm_crash();
  } else {
    acts_.push_back(message);
    has_acts_.store(true);
  }
}

Result<Promote> Member::park() {
  send(Park{});
  std::unique_lock lock(mutex_);
  if (!wait(lock, [&] { return promote_.has_value(); }))
    return Error(Code::Unavailable, "the agent is gone: " + gone_why_);
  return *promote_;
}

Result<Assign> Member::attach() {
  send(Attach{});
  std::unique_lock lock(mutex_);
  if (!wait(lock, [&] { return assign_.has_value(); }))
    return Error(Code::Unavailable, "the agent is gone: " + gone_why_);
  return *assign_;
}

Result<Regroup> Member::ready(Step applied) {
  std::unique_lock lock(mutex_);
  regroup_.reset();
  verdict_.reset();
  released_ = false;
  // What happens from here on belongs to a new group, in which steps may come again.
  begun_.store(kNoStep);
  passed_.store(kNoStep);
  send(Ready{.epoch = std::max(epoch_, aborted_.load()), .applied = applied, .round = ++rounds_});
  if (!wait(lock, [&] { return regroup_.has_value(); }))
    return Error(Code::Unavailable, "the agent is gone: " + gone_why_);
  return *regroup_;
}

void Member::restored(Epoch epoch, Step step) { send(Restored{.epoch = epoch, .step = step}); }

Result<bool> Member::group_error(Epoch epoch, const std::string& text) {
  std::unique_lock lock(mutex_);
  if (broken(epoch)) return true;
  verdict_.reset();
  send(GroupError{.epoch = epoch, .text = text.substr(0, 4096)});
  // The agent says at once that this is its business; the abort tells when the old group may be left.
  if (!wait(lock, [&] { return broken(epoch) || verdict_ == false; })) {
    return Error(Code::Unavailable, "the agent is gone: " + gone_why_);
  }
  return broken(epoch);
}

Result<bool> Member::finished(Epoch epoch, Step step) {
  std::unique_lock lock(mutex_);
  send(Finished{.epoch = epoch, .step = step});
  if (!wait(lock, [&] { return released_ || broken(epoch); }))
    return Error(Code::Unavailable, "the agent is gone: " + gone_why_);
  return released_;
}

Result<KvReply> Member::kv(KvRequest request) {
  std::unique_lock lock(mutex_);
  request.id = next_kv_++;
  const std::uint64_t id = request.id;
  kv_[id] = std::nullopt;
  send(std::move(request));
  const bool answered = wait(lock, [&] { return kv_[id].has_value(); });
  const std::optional<KvReply> reply = kv_[id];
  kv_.erase(id);
  if (!answered) return Error(Code::Unavailable, "the agent is gone: " + gone_why_);
  return *reply;
}

void Member::failed(const std::string& text) { send(Failed{.text = text.substr(0, 64 << 10)}); }

void Member::probe_reply(std::uint64_t probe, std::int64_t sequence, const std::string& stack) {
  send(ProbeReply{.id = probe, .sequence = sequence, .stack = stack.substr(0, 64 << 10)});
}

void Member::group_begin(Epoch epoch) {
  const std::lock_guard lock(mutex_);
  before_group_ = world::open_tcp_sockets();
  group_.clear();
  making_group_ = !broken(epoch);
}

void Member::group_made(Epoch epoch) {
  const std::lock_guard lock(mutex_);
  if (!making_group_) return;
  making_group_ = false;
  group_ = world::opened_since(before_group_, world::open_tcp_sockets());
  if (broken(epoch)) break_group();
}

void Member::mark(telemetry::Mark mark, Step step) {
  if (mark == telemetry::Mark::StepBegin) begun_.store(step);
  if (ring_) ring_->mark(mark, step);
}

void Member::phase(telemetry::Phase phase, Step step) {
  if (ring_) ring_->phase(phase, step);
}

bool Member::pass(Step step) {
  passed_.store(step);
  return proposed_.load();
}

Result<std::uint8_t> Member::boundary(Step step) {
  std::unique_lock lock(mutex_);
  const auto settled = [&] { return !proposal_ || proposal_->step != step; };
  if (!wait(lock, settled)) return Error(Code::Unavailable, "the agent is gone: " + gone_why_);
  const auto due = due_.extract(step);
  const std::uint8_t actions = due.empty() ? std::uint8_t{0} : due.mapped();
  proposed_.store(proposal_ || !due_.empty());
  return actions;
}

std::string Member::fault(Step step) {
  if (!has_acts_.load(std::memory_order_relaxed)) return "";
  const std::lock_guard lock(mutex_);
  const auto due = std::find_if(acts_.begin(), acts_.end(), [&](const Act& act) { return act.step <= step; });
  if (due == acts_.end()) return "";
  std::string kind = due->kind;
  acts_.erase(due);
  has_acts_.store(!acts_.empty());
  return kind;
}

struct Member::Staged {
  Step step = 0;
  Epoch epoch = 0;
  std::string structure;
  std::vector<SaveTensor> tensors;
  ShardDone done;
};

bool Member::save(Step step, const std::string& structure, std::span<const SaveTensor> tensors) {
  auto staged = std::make_shared<Staged>();
  {
    const std::lock_guard lock(mutex_);
    if (writing_ > 0) return false;
    ++writing_;
    staged->epoch = epoch_;
  }
  staged->step = step;
  staged->structure = structure;
  staged->tensors.assign(tensors.begin(), tensors.end());
  world_.loop().post([this, staged] {
    world_.loop().background([this, staged] { write(staged); },
                             [this, staged] {
                               if (connection_) connection_->send(encode(staged->done));
                               const std::lock_guard lock(mutex_);
                               --writing_;
                               changed_.notify_all();
                             });
  });
  return true;
}

bool Member::writing() const {
  const std::lock_guard lock(mutex_);
  return writing_ > 0;
}

std::string Member::ckpt_path(Step step, Epoch epoch) const {
  return assign_->ckpt_dir + "/" + store::checkpoint_name({.epoch = epoch, .step = step});
}

void Member::write(const std::shared_ptr<Staged>& staged) {
  ShardDone& done = staged->done;
  done.epoch = staged->epoch;
  done.step = staged->step;
  auto record = store::in_background(staged->tensors, [&] {
    return store::write_shard(disk_, ckpt_path(staged->step, staged->epoch), assign_->rank, assign_->world_size,
                              staged->tensors);
  });
  if (!record) {
    done.error = record.error().message();
    return;
  }
  done.file = record->file;
  done.bytes = record->bytes;
  done.header_crc32c = record->header_crc;
  if (assign_->rank == 0) done.structure = staged->structure;
}

void Member::drain() {
  std::unique_lock lock(mutex_);
  wait(lock, [&] { return writing_ == 0; });
}

}  // namespace holdfast::run
