#include "world/memory_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "world/parallel.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace holdfast::world {
namespace {

constexpr std::size_t kPartBytes = std::size_t{4} << 20U;  // of one thread at a time
constexpr std::size_t kAsideFrom = std::size_t{64} << 10U;
constexpr std::size_t kLine = 64;

#ifdef __SSE2__
/// `to` begins a line; `lines` of them. A write that goes past the caches need not read the line first.
void copy_lines(std::byte* to, const std::byte* from, std::size_t lines) {
  for (; lines > 0; --lines, to += kLine, from += kLine) {
    auto* const out = reinterpret_cast<__m128i*>(to);
    const auto* const in = reinterpret_cast<const __m128i*>(from);
    const __m128i a = _mm_loadu_si128(in);
    const __m128i b = _mm_loadu_si128(in + 1);
    const __m128i c = _mm_loadu_si128(in + 2);
    const __m128i d = _mm_loadu_si128(in + 3);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
  }
  _mm_sfence();
}
#else
void copy_lines(std::byte* to, const std::byte* from, std::size_t lines) { std::memcpy(to, from, lines * kLine); }
#endif

void copy(const MemoryCopy& part) {
  std::byte* to = part.to;
  BytesView from = part.from;
  if (from.size() >= kAsideFrom) {
    const std::size_t lead = (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine;
    std::memcpy(to, from.data(), lead);
    const std::size_t lines = (from.size() - lead) / kLine;
    copy_lines(to + lead, from.data() + lead, lines);
    to += lead + lines * kLine;
    from = from.subspan(lead + lines * kLine);
  }
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

}  // namespace

void copy_all(std::span<const MemoryCopy> copies, unsigned threads) {
  std::vector<MemoryCopy> parts;
  for (const MemoryCopy& each : copies) {
    for (std::size_t at = 0; at < each.from.size(); at += kPartBytes) {
      parts.push_back({each.to + at, each.from.subspan(at, std::min(kPartBytes, each.from.size() - at))});
    }
  }
  parallel_for(threads, parts.size(), [&](std::size_t i) { copy(parts[i]); });
}

}  // namespace holdfast::world
