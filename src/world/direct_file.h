// Files written past the page cache: at the disk's own speed, and without a copy of them in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "world/disk.h"

namespace holdfast::world {

constexpr std::uint64_t kDirectPage = 4096;    ///< what file systems and disks ask of places, sizes and addresses
constexpr unsigned kDirectWritesAtATime = 12;  ///< so many keep a disk busy even while some are being put together

/// Whether each piece begins on a page, and there is enough to write.
bool suits_direct_writes(const Pieces& pieces);

/// Creates or truncates a file that will have at most `total` bytes, room for which is taken at once, and which ends
/// where the last of what is written does. nullptr where the file
/// system knows no such writes. `write_at` takes places on a page, and a size that is no whole number of pages at the
/// end alone. Errors: NotFound, Denied, Unavailable (full).
Result<std::unique_ptr<WritableFile>> create_direct_file(const std::string& path, std::uint64_t total);

}  // namespace holdfast::world
