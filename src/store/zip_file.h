// A zip file of stored (never compressed) entries, as PyTorch writes it: found through its central directory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "world/files.h"

namespace holdfast::store {

struct ZipEntry {
  std::uint64_t begin = 0;  ///< of its data, counted from the start of what was opened
  std::uint64_t size = 0;
  std::uint32_t crc = 0;
};

/// Bytes of a file from `begin` on; a whole file or an item in one.
struct FileSlice {
  world::ReadableFile* file = nullptr;  ///< outlives the slice
  std::uint64_t begin = 0;
  std::uint64_t size = 0;

  /// Errors: Corrupt (outside the slice), Unavailable.
  Status read_at(std::uint64_t offset, std::span<std::byte> out) const;
};

class ZipFile {
 public:
  /// Refuses whatever two readers could see differently: entries that overlap, share a name, lie outside or are called
  /// otherwise in their own header; and what is compressed, encrypted or split. Errors: BadInput, Unavailable.
  static Result<ZipFile> open(const FileSlice& slice);

  const std::map<std::string, ZipEntry>& entries() const { return entries_; }
  const ZipEntry* find(const std::string& name) const;
  /// A small entry in memory, its checksum checked. Errors: BadInput (larger than `bytes_max`), Corrupt.
  Result<Bytes> read(const std::string& name, std::uint64_t bytes_max) const;
  /// Every byte of the entry against its checksum, in pieces of at most 1 MiB; those from `begin` on that fill `out`
  /// are kept there. Errors: Corrupt.
  Status read_checked(const ZipEntry& entry, std::uint64_t begin, std::span<std::byte> out) const;
  const FileSlice& slice() const { return slice_; }

 private:
  explicit ZipFile(const FileSlice& slice) : slice_(slice) {}

  FileSlice slice_;
  std::map<std::string, ZipEntry> entries_;
};

}  // namespace holdfast::store
