// The loss model of file contents.
#include "sim/inode.h"

#include <algorithm>

namespace holdfast::sim {

namespace {

/// Blocks that were allocated and never written read as zeros, or as what lay there before.
void scramble(std::span<std::byte> lost, SimRandom& random) {
  const bool zeros = random.chance(0.7);
  for (std::byte& byte : lost) byte = zeros ? std::byte{0} : static_cast<std::byte>(random.next());
}

}  // namespace

void sync_bytes(Inode& file) {
  std::erase_if(file.unsynced, [](const Unsynced& part) { return !part.doomed; });
  file.before_truncation.reset();
}

void doom_bytes(Inode& file) {
  for (Unsynced& part : file.unsynced) part.doomed = true;
}

Bytes surviving_bytes(const Inode& file, SimRandom& random) {
  if (file.before_truncation && random.chance(0.5)) return *file.before_truncation;
  Bytes left = file.bytes;
  // All lost and all kept are the cases that matter most; drawing each part alone would hardly ever give them.
  const double keep = random.chance(0.5) ? 0.5 : (random.chance(0.5) ? 1.0 : 0.0);
  std::size_t end = 0;
  std::size_t last = 0;
  for (const Unsynced& part : file.unsynced) {
    // Durable bytes may lie between: parts after a failed sync were synced by a later one.
    if (part.offset > last) end = part.offset;
    last = part.offset + part.size;
    const bool torn = random.chance(0.2);
    const std::size_t kept = random.chance(keep) ? (torn ? random.below(part.size + 1) : part.size) : 0;
    if (kept > 0) end = part.offset + kept;
    scramble(std::span(left).subspan(part.offset + kept, part.size - kept), random);
    // Most often what was to be overwritten is still there.
    if (part.before.size() > kept && random.chance(0.7)) {
      std::copy(part.before.begin() + static_cast<std::ptrdiff_t>(kept), part.before.end(),
                left.begin() + static_cast<std::ptrdiff_t>(part.offset + kept));
    }
  }
  if (file.unsynced.empty() || file.bytes.size() > last) return left;
  // The size may have been written although the bytes were not.
  const bool size_kept = random.chance(0.3);
  if (!size_kept) left.resize(std::max(end, file.unsynced.front().offset));
  return left;
}

}  // namespace holdfast::sim
