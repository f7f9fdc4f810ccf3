// A worker's side of the conversation with its agent. Thread-safe: the loop's thread receives (and acts on an abort at
// once, whatever the program's threads are doing), the program's threads call and block.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "run/messages.h"
#include "store/shard.h"
#include "telemetry/ring.h"
#include "world/faulty_disk.h"
#include "world/sockets.h"
#include "world/world.h"

namespace holdfast::run {

struct MemberOptions {
  WorkerId worker = 0;
  world::Address address;
  std::string secret;
  std::span<std::byte> ring;                          ///< shared with the agent; empty: no marks are kept
  std::function<void(std::uint64_t probe)> on_probe;  ///< on the loop's thread: have the interpreter answered elsewhere
  std::function<void()> on_break;                     ///< the group's sockets have just been shut; must not call back
};

using SaveTensor = store::TensorData;

class Member {
 public:
  /// `world` outlives this object; its loop must run on a thread of its own by the time anything blocks here.
  Member(world::World& world, MemberOptions options);
  ~Member();

  // Each blocks until the agent answers. Errors: Unavailable (the agent is gone).
  Status connect(world::Nanos patience);
  Result<Promote> park();
  Result<Assign> attach();
  Result<Regroup> ready(Step applied);
  Result<bool> group_error(Epoch epoch, const std::string& text);
  /// True: every rank is there. False: a fault came first, call `ready`.
  Result<bool> finished(Epoch epoch, Step step);
  Result<KvReply> kv(KvRequest request);

  void restored(Epoch epoch, Step step);
  /// Sends what is left and hangs up. Blocks for that; nothing else may be called afterwards.
  void leave();
  void failed(const std::string& text);
  void probe_reply(std::uint64_t probe, std::int64_t sequence, const std::string& stack);

  bool broken(Epoch epoch) const { return aborted_.load() >= epoch; }
  /// Bracket the making of a process group: what is opened in between is broken when its epoch is aborted.
  void group_begin(Epoch epoch);
  void group_made(Epoch epoch);

  void mark(telemetry::Mark mark, Step step);
  void phase(telemetry::Phase phase, Step step);

  /// This rank has just completed `step`. Whether `boundary` may have anything to say of it.
  bool pass(Step step);
  /// What all ranks agreed to do after `step` (kTakeCheckpoint, kStop), which this rank has passed. Blocks for the
  /// others' votes.
  Result<std::uint8_t> boundary(Step step);
  /// A scheduled fault to act out in `step`: "sleep", "spin" or "".
  std::string fault(Step step);

  /// Has the tensors written as this rank's shard of the checkpoint of `step` applied steps. Their bytes must stay as
  /// they are while `writing`. False: the last one is still being written and this one is left out.
  bool save(Step step, const std::string& structure, std::span<const SaveTensor> tensors);
  bool writing() const;
  /// Blocks until nothing is being written.
  void drain();

 private:
  struct Staged;
  void on_message(BytesView bytes);
  void handle(const Promote& message);
  void handle(const Assign& message);
  void handle(const Regroup& message);
  void handle(const Abort& message);
  void handle(const Verdict& message);
  void handle(const KvReply& message);
  void handle(const Probe& message);
  void handle(const Release& message);
  void handle(const Propose& message);
  void handle(const Agreed& message);
  void handle(const Act& message);
  template <typename Other>
  void handle(const Other&) {}

  void send(Message message);
  void beat();
  void break_group();
  template <typename Ready>
  bool wait(std::unique_lock<std::mutex>& lock, Ready ready);
  std::string ckpt_path(Step step, Epoch epoch) const;
  void write(const std::shared_ptr<Staged>& staged);

  world::World& world_;
  const MemberOptions options_;
  world::FaultyDisk disk_;
  std::optional<telemetry::RingWriter> ring_;
  std::unique_ptr<world::Connection> connection_;  // the loop's thread alone

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool connected_ = false;
  bool gone_ = false;
  bool left_ = false;
  std::string gone_why_;
  std::optional<Promote> promote_;
  std::optional<Assign> assign_;
  std::optional<Regroup> regroup_;
  std::optional<bool> verdict_;
  bool released_ = false;
  std::map<std::uint64_t, std::optional<KvReply>> kv_;
  std::uint64_t next_kv_ = 1;
  std::uint64_t rounds_ = 0;
  Epoch epoch_ = 0;
  std::vector<Act> acts_;
  std::vector<world::OpenSocket> before_group_, group_;
  bool making_group_ = false;
  std::optional<Propose> proposal_;
  std::map<Step, std::uint8_t> due_;  // agreed on, for the step after which it is to be done
  std::uint32_t writing_ = 0;

  std::atomic<Epoch> aborted_{0};
  std::atomic<bool> proposed_{false};
  std::atomic<bool> has_acts_{false};
  std::atomic<Step> begun_{kNoStep};
  std::atomic<Step> passed_{kNoStep};  // newest step whose boundary this rank has come to
};

}  // namespace holdfast::run
