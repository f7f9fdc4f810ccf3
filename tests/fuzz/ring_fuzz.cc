// Fuzzes the reader of a rank's ring: any bytes in the shared memory, changed under it between polls.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "telemetry/ring.h"

using namespace holdfast::telemetry;

namespace {

constexpr std::size_t kSlots = 8;

void read_all(RingReader& reader) {
  std::vector<Event> events;
  reader.poll(events);
  CHECK(events.size() <= kSlots);
  for (const Event& event : events) {
    CHECK(event.time_ns >= 0 && event.step >= holdfast::kNoStep);
    CHECK(static_cast<std::size_t>(event.mark) < kMarks && static_cast<std::size_t>(event.phase) < kPhases);
  }
  if (const auto status = reader.status()) {
    CHECK(status->since_ns >= 0 && static_cast<std::size_t>(status->phase) < kPhases);
  }
}

}  // namespace

/// First byte: with or without a sound header. Then images of the memory, one after the other.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::vector<std::uint64_t> words(ring_bytes(kSlots) / sizeof(std::uint64_t));
  const auto memory = std::as_writable_bytes(std::span(words));
  const std::size_t keep = data[0] % 2 == 0 ? 16 : 0;
  if (keep != 0) RingWriter(memory, [] { return std::int64_t{1}; }).mark(Mark::StepBegin, 1);
  RingReader reader(memory);
  for (std::size_t at = 1; at < size;) {
    const std::size_t part = std::min(size - at, memory.size() - keep);
    std::memcpy(memory.data() + keep, data + at, part);
    at += part;
    for (int poll = 0; poll < 3; ++poll) read_all(reader);
  }
  return 0;
}
