// What the agent and its workers say to each other: one struct a message, one list of fields each.
// Byte layout: docs/format-wire.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"

namespace holdfast::run {

// ---- worker to agent ----

/// First message on a connection. The agent closes it where the version differs or the worker is not one of its own.
struct Hello {
  WorkerId worker = 0;
  std::string version;
  auto fields() { return std::tie(worker, version); }
};
/// A spare waits for work. Answer: Promote.
struct Park {
  auto fields() { return std::tie(); }
};
/// The script uses the Python API. Answer: Assign.
struct Attach {
  auto fields() { return std::tie(); }
};
/// In the step loop, holding a state that has applied `applied` steps (kNoStep: none that can be used), wanting the
/// next epoch's group. Answer: Regroup. `epoch`: the newest this worker has heard of. `round` counts this worker's
/// calls, so that a message that comes twice is acted on once.
struct Ready {
  Epoch epoch = 0;
  Step applied = kNoStep;
  std::uint64_t round = 0;
  auto fields() { return std::tie(epoch, applied, round); }
};
/// The state of `step` is in place in the group of `epoch`.
struct Restored {
  Epoch epoch = 0;
  Step step = 0;
  auto fields() { return std::tie(epoch, step); }
};
/// A collective failed. Answer: Verdict.
struct GroupError {
  Epoch epoch = 0;
  std::string text;
  auto fields() { return std::tie(epoch, text); }
};
enum class KvOp : std::uint8_t { Set, Get, Add, Check, Delete };
/// Store of one epoch. Get waits for the key up to `timeout_ms`. Check: `keys`. Add: `number` is the increment.
struct KvRequest {
  std::uint64_t id = 0;
  Epoch epoch = 0;
  KvOp op = KvOp::Set;
  std::vector<std::string> keys;
  std::string value;
  std::int64_t number = 0;
  std::int64_t timeout_ms = 0;
  auto fields() { return std::tie(id, epoch, op, keys, value, number, timeout_ms); }
};
/// This rank's part of the checkpoint of `step` is durable as `file`, or `error` says why not.
struct ShardDone {
  Epoch epoch = 0;
  Step step = 0;
  std::string file;
  std::uint64_t bytes = 0;
  std::uint32_t header_crc32c = 0;
  std::string structure;  ///< from rank 0 alone: how the tensors make up the state, as JSON
  std::string error;
  auto fields() { return std::tie(epoch, step, file, bytes, header_crc32c, structure, error); }
};
/// The interpreter answered: collectives begun in the default group, and where the main thread is.
struct ProbeReply {
  std::uint64_t id = 0;
  std::int64_t sequence = 0;
  std::string stack;
  auto fields() { return std::tie(id, sequence, stack); }
};
/// Sent by a native thread that a blocked collective or a held interpreter lock can't stop.
struct Heartbeat {
  auto fields() { return std::tie(); }
};
/// At the end of the step loop. Answer: Release, or the Abort of a new fault.
struct Finished {
  Epoch epoch = 0;
  Step step = 0;
  auto fields() { return std::tie(epoch, step); }
};
/// Answer to Propose: whether this rank can still act after `step`; if not, the step it is in.
struct Vote {
  std::uint64_t proposal = 0;
  bool accepted = false;
  Step step = 0;
  auto fields() { return std::tie(proposal, accepted, step); }
};

/// The script raised `text` (a traceback, shown already); the process is on its way out.
struct Failed {
  std::string text;
  auto fields() { return std::tie(text); }
};

// ---- agent to worker ----

struct Promote {
  std::map<std::string, std::string> env;
  auto fields() { return std::tie(env); }
};
struct Assign {
  Rank rank = 0;
  Rank local_rank = 0;
  std::uint32_t world_size = 0;
  Epoch epoch = 0;
  bool replacement = false;
  std::string run_id;
  std::int64_t seed = 0;
  std::string ckpt_dir;
  std::int64_t ckpt_every_steps = 0;  ///< 0: never by count
  auto fields() {
    return std::tie(rank, local_rank, world_size, epoch, replacement, run_id, seed, ckpt_dir, ckpt_every_steps);
  }
};
/// All go on at `step` in the group of `epoch`; where the worker is in that group already it keeps it. `copies`: state
/// goes from .first to .second. `checkpoint`: where not empty, every rank loads that directory.
struct Regroup {
  Epoch epoch = 0;
  Step step = 0;
  std::vector<std::pair<Rank, Rank>> copies;
  std::string checkpoint;
  auto fields() { return std::tie(epoch, step, copies, checkpoint); }
};
/// The group of `epoch` and all before it are broken: shut their sockets at once.
struct Abort {
  Epoch epoch = 0;
  std::string reason;
  auto fields() { return std::tie(epoch, reason); }
};
struct Verdict {
  Epoch epoch = 0;
  bool recover = false;
  auto fields() { return std::tie(epoch, recover); }
};
enum class KvStatus : std::uint8_t { Ok, Missing, TimedOut, Closed };
struct KvReply {
  std::uint64_t id = 0;
  KvStatus status = KvStatus::Ok;
  std::string value;
  std::int64_t number = 0;
  auto fields() { return std::tie(id, status, value, number); }
};
struct Probe {
  std::uint64_t id = 0;
  auto fields() { return std::tie(id); }
};
struct Release {
  auto fields() { return std::tie(); }
};
constexpr std::uint8_t kTakeCheckpoint = 1;
constexpr std::uint8_t kStop = 2;
/// Shall we all do `actions` after `step`? A later proposal replaces this one.
struct Propose {
  std::uint64_t proposal = 0;
  std::uint8_t actions = 0;
  Step step = 0;
  auto fields() { return std::tie(proposal, actions, step); }
};
/// All voted yes.
struct Agreed {
  std::uint64_t proposal = 0;
  auto fields() { return std::tie(proposal); }
};
/// A scheduled fault for this worker to act out: "sleep", "gil" in step `step`; "disk_full", "writer_crash" at the next
/// save.
struct Act {
  std::string kind;
  Step step = 0;
  auto fields() { return std::tie(kind, step); }
};

using Message = std::variant<Hello, Park, Attach, Ready, Restored, GroupError, KvRequest, ShardDone, ProbeReply,
                             Heartbeat, Finished, Vote, Promote, Assign, Regroup, Abort, Verdict, KvReply, Probe,
                             Release, Propose, Agreed, Act, Failed>;

Bytes encode(Message message);
/// Errors: BadInput (unknown kind, cut short, bytes left over). Allocates no more than the input's size.
Result<Message> decode(BytesView bytes);

}  // namespace holdfast::run
