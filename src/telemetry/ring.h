// Marks of one process, handed to one reader through shared memory: no lock, no system call, nothing to wait for.
// A writer that is stopped or killed at any instruction leaves the ring readable. Layout: docs/format-ring.md.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "telemetry/marks.h"

namespace holdfast::telemetry {

constexpr std::size_t kRingHeaderBytes = 256;
constexpr std::size_t kRingSlotBytes = 32;
/// Memory for `slots` events in flight (a power of two).
constexpr std::size_t ring_bytes(std::size_t slots) { return kRingHeaderBytes + slots * kRingSlotBytes; }
/// The size Holdfast gives a rank: 4096 events, about 128 KiB.
constexpr std::size_t kRingBytes = ring_bytes(4096);

/// CLOCK_MONOTONIC through the vDSO: about 20 ns, no system call.
std::int64_t monotonic_ns();

class RingWriter {
 public:
  /// `memory` (at least ring_bytes(2), 8-byte aligned: CHECKed) outlives the writer. Memory that already holds a ring
  /// of this size is continued, anything else is formatted.
  explicit RingWriter(std::span<std::byte> memory, std::int64_t (*now_ns)() = monotonic_ns);

  /// Any thread, also several at once. StepBegin, StepEnd and Finished set the phase as marks.h says: call these (and
  /// `phase`) from the main thread only, or two threads would disagree about what the rank is busy with.
  void mark(Mark mark, Step step);
  /// Sets the phase. Main thread only.
  void phase(Phase phase, Step step);
  /// Stamped on the marks that follow.
  void epoch(std::uint32_t epoch) { epoch_.store(epoch, std::memory_order_relaxed); }

 private:
  void write(const Event& event);
  void publish_status(const Event& event);

  std::span<std::byte> memory_;
  std::uint64_t slots_;
  std::int64_t (*now_ns_)();
  std::atomic<std::uint32_t> epoch_{0};
  std::atomic<Phase> phase_{Phase::Start};
  std::atomic<Step> step_{kNoStep};
};

/// What the writer is busy with, and since when.
struct RingStatus {
  Phase phase = Phase::Start;
  Step step = kNoStep;
  std::int64_t since_ns = 0;  ///< when this phase of this step began
  std::uint32_t epoch = 0;
  friend bool operator==(const RingStatus&, const RingStatus&) = default;
};

/// Trusts nothing in the memory: whatever another process writes there, every call reads inside the span, takes
/// time bounded by the capacity, and gives events whose fields are in range (times >= 0, steps >= kNoStep).
class RingReader {
 public:
  /// `memory` outlives the reader. It may still be unformatted.
  explicit RingReader(std::span<std::byte> memory);

  /// Ok once a writer of our version has formatted memory of just this size; else Unavailable (not formatted yet) or
  /// Corrupt.
  Status check() const;
  /// Appends what is new, oldest first, at most one ring full. Returns how many were lost since the last call:
  /// overrun by newer ones, or damaged.
  std::uint64_t poll(std::vector<Event>& out);
  /// The newest whole status; none before the first mark.
  std::optional<RingStatus> status() const;

 private:
  enum class Look : std::uint8_t { Whole, Damaged, Overrun, Unfinished };
  Look look_at(std::uint64_t index, Event& out) const;

  std::span<std::byte> memory_;
  std::uint64_t slots_ = 0;  ///< 0: too small to be a ring
  std::uint64_t next_ = 0;   ///< index of the event to read next
  std::uint32_t patience_ = 0;
};

}  // namespace holdfast::telemetry
