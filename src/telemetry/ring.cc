// The order of loads and stores here is the whole point: a slot's sequence word is claimed by compare-and-swap, its
// three payload words are stored with release, read with acquire, and trusted only if the sequence word was the same
// before and after. Thread fences would do the same but thread sanitizer cannot follow them.
#include "telemetry/ring.h"

#include <time.h>

#include <algorithm>
#include <bit>
#include <string>

#include "base/check.h"

namespace holdfast::telemetry {
namespace {

using Word = std::uint64_t;

constexpr Word kMagic = 0x31474e4952464f48;  // "HOFRING1" in memory
constexpr std::uint32_t kVersion = 1;

// Byte offsets in the header.
constexpr std::size_t kMagicAt = 0;
constexpr std::size_t kShapeAt = 8;  // version | slots << 32U
constexpr std::size_t kNextAt = 64;  // events claimed so far
constexpr std::size_t kStatusNextAt = 72;
constexpr std::size_t kStatusAt = 128;  // four slots
constexpr Word kStatusSlots = 4;
static_assert(kStatusAt + kStatusSlots * kRingSlotBytes == kRingHeaderBytes);

// A slot's sequence word: 0 never written, index + 1 whole, that with this bit while it is being written.
constexpr Word kBusy = Word{1} << 63U;

// Polls an unfinished slot is waited for while newer ones are there. A thread between claim and publish needs
// nanoseconds of processor time; one that gave up its slot (see write_slot) never finishes it.
constexpr std::uint32_t kPatiencePolls = 8;

std::atomic_ref<Word> word(std::span<std::byte> memory, std::size_t at) {
  return std::atomic_ref<Word>(*reinterpret_cast<Word*>(memory.data() + at));
}

Word shape(Word slots) { return kVersion | slots << 32U; }

Word slots_that_fit(std::span<std::byte> memory) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(memory.data()) % alignof(Word) == 0;
  if (!aligned || memory.size() < ring_bytes(2)) return 0;
  const Word fit = std::bit_floor(Word{(memory.size() - kRingHeaderBytes) / kRingSlotBytes});
  return std::min(fit, Word{1} << 31U);
}

Word pack(const Event& event) {
  return Word{event.epoch} | Word{static_cast<std::uint16_t>(event.mark)} << 32U |
         Word{static_cast<std::uint16_t>(event.phase)} << 48U;
}

/// Writes event number `index`, or drops it where another thread is still busy in this slot (it was a whole ring
/// slower) or a newer event is already there: two threads never write one slot at once.
void write_slot(std::span<std::byte> memory, std::size_t at, Word index, const Event& event) {
  auto sequence = word(memory, at);
  Word seen = sequence.load(std::memory_order_relaxed);
  do {
    if ((seen & kBusy) != 0 || seen > index) return;
  } while (!sequence.compare_exchange_weak(seen, kBusy | (index + 1), std::memory_order_acq_rel));
  word(memory, at + 8).store(static_cast<Word>(event.time_ns), std::memory_order_release);
  word(memory, at + 16).store(static_cast<Word>(event.step), std::memory_order_release);
  word(memory, at + 24).store(pack(event), std::memory_order_release);
  sequence.store(index + 1, std::memory_order_release);
}

/// False where a writer came in between.
bool read_payload(std::span<std::byte> memory, std::size_t at, Word sequence_seen, Event& out) {
  out.time_ns = static_cast<std::int64_t>(word(memory, at + 8).load(std::memory_order_acquire));
  out.step = static_cast<Step>(word(memory, at + 16).load(std::memory_order_acquire));
  const Word packed = word(memory, at + 24).load(std::memory_order_acquire);
  out.epoch = static_cast<std::uint32_t>(packed);
  out.mark = static_cast<Mark>(packed >> 32U & 0xffffU);
  out.phase = static_cast<Phase>(packed >> 48U);
  return word(memory, at).load(std::memory_order_acquire) == sequence_seen;
}

bool in_range(const Event& event) {
  return event.time_ns >= 0 && event.step >= kNoStep && static_cast<std::size_t>(event.mark) < kMarks &&
         static_cast<std::size_t>(event.phase) < kPhases;
}

std::optional<Phase> phase_begun_by(Mark mark) {
  switch (mark) {
    case Mark::StepBegin: return Phase::Train;
    case Mark::StepEnd: return Phase::Between;
    case Mark::Finished: return Phase::After;
    default: return std::nullopt;
  }
}

}  // namespace

std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

RingWriter::RingWriter(std::span<std::byte> memory, std::int64_t (*now_ns)())
    : memory_(memory), slots_(slots_that_fit(memory)), now_ns_(now_ns) {
  CHECK(slots_ >= 2);
  const bool ours = word(memory_, kMagicAt).load(std::memory_order_acquire) == kMagic &&
                    word(memory_, kShapeAt).load(std::memory_order_acquire) == shape(slots_);
  if (ours) return;
  for (std::size_t at = 0; at < ring_bytes(slots_); at += sizeof(Word)) {
    word(memory_, at).store(0, std::memory_order_relaxed);
  }
  word(memory_, kShapeAt).store(shape(slots_), std::memory_order_relaxed);
  word(memory_, kMagicAt).store(kMagic, std::memory_order_release);
}

void RingWriter::mark(Mark mark, Step step) {
  const auto begun = phase_begun_by(mark);
  if (begun) phase_.store(*begun, std::memory_order_relaxed);
  const Event event{now_ns_(), step, epoch_.load(std::memory_order_relaxed), mark,
                    phase_.load(std::memory_order_relaxed)};
  write(event);
  if (begun) publish_status(event);
}

void RingWriter::phase(Phase phase, Step step) {
  const bool same =
      phase_.exchange(phase, std::memory_order_relaxed) == phase && step_.load(std::memory_order_relaxed) == step;
  const Event event{now_ns_(), step, epoch_.load(std::memory_order_relaxed), Mark::Phase, phase};
  write(event);
  if (!same) publish_status(event);  // said twice: it still began when it was said first
}

void RingWriter::write(const Event& event) {
  const Word index = word(memory_, kNextAt).fetch_add(1, std::memory_order_acq_rel);
  write_slot(memory_, kRingHeaderBytes + (index & (slots_ - 1)) * kRingSlotBytes, index, event);
}

void RingWriter::publish_status(const Event& event) {
  step_.store(event.step, std::memory_order_relaxed);
  const Word index = word(memory_, kStatusNextAt).fetch_add(1, std::memory_order_acq_rel);
  write_slot(memory_, kStatusAt + index % kStatusSlots * kRingSlotBytes, index, event);
}

RingReader::RingReader(std::span<std::byte> memory) : memory_(memory), slots_(slots_that_fit(memory)) {}

Status RingReader::check() const {
  if (slots_ == 0) return Error(Code::BadInput, "ring memory is too small or not aligned");
  const Word magic = word(memory_, kMagicAt).load(std::memory_order_acquire);
  if (magic == 0) return Error(Code::Unavailable, "ring is not formatted yet");
  if (magic != kMagic) return Error(Code::Corrupt, "ring memory does not begin with the ring's mark");
  const Word found = word(memory_, kShapeAt).load(std::memory_order_acquire);
  if (static_cast<std::uint32_t>(found) != kVersion) {
    return Error(Code::Corrupt, "ring version " + std::to_string(static_cast<std::uint32_t>(found)) + ", want " +
                                    std::to_string(kVersion));
  }
  if (found != shape(slots_)) {
    return Error(Code::Corrupt,
                 "ring says " + std::to_string(found >> 32U) + " slots, its memory holds " + std::to_string(slots_));
  }
  return Ok{};
}

RingReader::Look RingReader::look_at(std::uint64_t index, Event& out) const {
  const std::size_t at = kRingHeaderBytes + (index & (slots_ - 1)) * kRingSlotBytes;
  const Word sequence = word(memory_, at).load(std::memory_order_acquire);
  if ((sequence & ~kBusy) > index + 1) return Look::Overrun;
  if (sequence != index + 1) return Look::Unfinished;
  if (!read_payload(memory_, at, sequence, out)) return Look::Overrun;
  return in_range(out) ? Look::Whole : Look::Damaged;
}

std::uint64_t RingReader::poll(std::vector<Event>& out) {
  if (!check()) return 0;
  const Word end = word(memory_, kNextAt).load(std::memory_order_acquire);
  if (end >= kBusy) return 0;  // no writer counts that far
  std::uint64_t lost = 0;
  if (end < next_) next_ = end;  // formatted anew, or garbage
  if (end - next_ > slots_) {
    lost = end - next_ - slots_;
    next_ = end - slots_;
  }
  for (; next_ < end; ++next_) {
    Event event;
    const Look look = look_at(next_, event);
    if (look == Look::Unfinished && (next_ + 1 == end || patience_++ < kPatiencePolls)) break;
    patience_ = 0;
    if (look == Look::Whole) {
      out.push_back(event);
    } else {
      ++lost;
    }
  }
  return lost;
}

std::optional<RingStatus> RingReader::status() const {
  if (!check()) return std::nullopt;
  std::optional<RingStatus> newest;
  Word newest_sequence = 0;
  for (Word slot = 0; slot < kStatusSlots; ++slot) {
    const std::size_t at = kStatusAt + slot * kRingSlotBytes;
    const Word sequence = word(memory_, at).load(std::memory_order_acquire);
    Event event;
    if ((sequence & kBusy) != 0 || sequence <= newest_sequence) continue;
    if (!read_payload(memory_, at, sequence, event) || !in_range(event)) continue;
    newest_sequence = sequence;
    newest = RingStatus{event.phase, event.step, event.time_ns, event.epoch};
  }
  return newest;
}

}  // namespace holdfast::telemetry
