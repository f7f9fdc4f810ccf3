// Files by name, wherever they are kept: read at any place, or written whole or not at all. A disk is such a place
// (disk.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace holdfast::world {

/// Bytes of a file, and where they are wanted.
struct BlockRead {
  std::uint64_t offset = 0;
  std::span<std::byte> into;
};

class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual std::uint64_t size() const = 0;
  /// Fills all of `out` from `offset`. Thread-safe. Errors: Corrupt (the file ends before), Unavailable.
  virtual Status read_at(std::uint64_t offset, std::span<std::byte> out) = 0;
  /// Fills all blocks, several at a time, begun in order. Calls `arrived(i)` once for each block that is filled, on any
  /// of at most `threads` threads (the caller's alone where it is 1; a place that has to be waited for may use more
  /// where it is not), several calls at a time. The first error, of a block or of `arrived`, is what it returns; no
  /// block is begun after it.
  virtual Status read_blocks(std::span<const BlockRead> blocks, unsigned threads,
                             const std::function<Status(std::size_t)>& arrived);
  /// Whether every byte is checked against its writer's tags on the way: checksums of one's own would tell nothing new.
  virtual bool checked() const { return false; }
};

class FileSource {
 public:
  virtual ~FileSource() = default;
  /// Errors: NotFound, Denied, Unavailable; messages name the file.
  virtual Result<std::unique_ptr<ReadableFile>> open(const std::string& name) = 0;
};

/// The whole file. Errors: as open and read_at; BadInput where it is larger than `bytes_max`.
Result<Bytes> read_file(FileSource& files, const std::string& name, std::uint64_t bytes_max);

/// How a file is cut for writing: piece 0 holds `head` bytes more than the others, the last is shorter.
struct Pieces {
  std::uint64_t head = 0;
  std::uint64_t piece = 0;
  std::uint64_t total = 0;
  bool total_is_most =
      false;  ///< the file may end before: the last piece written is then shorter, later ones never come

  std::uint64_t count() const;  ///< at least 1
  std::uint64_t begin(std::uint64_t index) const { return index == 0 ? 0 : head + index * piece; }
  std::uint64_t end(std::uint64_t index) const;
};

/// A file that appears under its name whole or not at all. Where it is not committed, nothing of it is left, as far as
/// the place still obeys.
class NewFile {
 public:
  virtual ~NewFile() = default;
  /// Each piece once, in any order. Thread-safe. `bytes` are only read within the call. Errors: Unavailable (full).
  virtual Status write(std::uint64_t index, BytesView bytes) = 0;
  /// After every piece was written: on Ok the file outlives a crash, and who had the old one open keeps it.
  virtual Status commit() = 0;
};

class FileTarget {
 public:
  virtual ~FileTarget() = default;
  /// The size of piece that suits a file of `total` bytes there: a multiple of 1 MiB.
  virtual std::uint64_t piece_bytes(const std::string& name, std::uint64_t total) const = 0;
  /// How many pieces to put together and write at a time, by a caller that has `threads` to compute with; 1 stays 1.
  virtual unsigned writes_at_a_time(const std::string& /*name*/, unsigned threads) const { return threads; }
  /// `aside`: what tells this writer's unfinished file from those of others, where the place shows such.
  virtual Result<std::unique_ptr<NewFile>> begin(const std::string& name, const std::string& aside,
                                                 const Pieces& pieces) = 0;
};

}  // namespace holdfast::world
