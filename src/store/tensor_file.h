// One safetensors file, read and written to the letter, that carries the checksums of its own bytes.
// Format: docs/format-tensors.md.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "store/aligned_bytes.h"
#include "store/checksums.h"
#include "store/read_policy.h"
#include "store/safetensors.h"
#include "store/tensor_data.h"
#include "world/files.h"

namespace holdfast::store {

/// What a file says of itself before its data.
struct TensorFile {
  SafetensorsHeader header;            ///< metadata as in the file, but for our checksums
  std::optional<Checksums> checksums;  ///< none where another program wrote it
  std::uint32_t header_crc = 0;        ///< CRC32C of all bytes before the data, those of the checksums among them
  bool checked = false;                ///< by its source, byte for byte: it needs no checksums
};

/// Reads and checks the header alone. Errors name the file: NotFound, BadInput (no safetensors), Corrupt (the header
/// does not match its checksum), Unavailable.
Result<TensorFile> read_tensor_file(world::FileSource& files, const std::string& path);

/// The same of a file that is open already; errors do not name it.
Result<TensorFile> read_tensor_head(world::ReadableFile& file);

/// Reads every byte of the data too and checks it where there are checksums; needs at most 40 MiB of memory.
/// Errors: as read_tensor_file; Corrupt names the tensor, the chunk and its bytes.
Result<TensorFile> verify_tensor_file(world::FileSource& files, const std::string& path, unsigned threads);

struct LoadedTensors {
  TensorFile file;
  std::vector<TensorInfo> tensors;  ///< those that were asked for; `begin` and `end` count from the block's start
  AlignedBytes block;

  /// Of one of `tensors`; valid as long as this object (also after a move of it).
  BytesView bytes(const TensorInfo& tensor) const {
    return block.all().subspan(tensor.begin, tensor.end - tensor.begin);
  }
};

/// Tensors in memory, every byte checked where the file has checksums. `names`: these alone, and only the chunks that
/// hold them are read; none: all. Errors: as verify_tensor_file; BadInput for a name that the file does not hold.
Result<LoadedTensors> load_tensor_file(world::FileSource& files, const std::string& path,
                                       const std::optional<std::vector<std::string>>& names, unsigned threads);
Result<LoadedTensors> load_tensor_file(world::FileSource& files, const std::string& path,
                                       const std::optional<std::vector<std::string>>& names, const ReadPolicy& policy);

/// Bytes of a data buffer, and where they are wanted.
struct DataRange {
  std::uint64_t begin = 0;  ///< counted from the start of the data buffer
  std::span<std::byte> out;
};

/// A tensor file kept open, to be read where and when its bytes are needed.
class OpenTensorFile {
 public:
  /// Errors: as read_tensor_file.
  static Result<OpenTensorFile> open(world::FileSource& files, const std::string& path);
  const std::string& path() const { return path_; }
  const TensorFile& about() const { return about_; }
  /// Fills all ranges, each chunk that they lie in read once and checked where the file has checksums. Thread-safe.
  /// Errors name the file: Corrupt, Unavailable.
  Status read(std::vector<DataRange> ranges, unsigned threads = 1) const;
  /// Fills all ranges and reads not a byte more: chunks that are wanted whole are checked, of others the bytes are
  /// taken as they are, so the file should have been verified before. Returns the bytes that were checked. Errors: as
  /// read.
  Result<std::uint64_t> read_exactly(const std::vector<DataRange>& ranges, unsigned threads) const;
  /// Reads every byte of the data and checks it where there are checksums. Errors: as read.
  Status verify(unsigned threads) const;
  /// From now on the data is taken as it is, whatever its checksums say.
  void trust() { about_.checksums.reset(); }
  /// The bytes before the data buffer, checked. Errors: as read; Corrupt where they changed since the file was opened.
  Result<Bytes> prefix() const;

 private:
  OpenTensorFile(std::string path, std::unique_ptr<world::ReadableFile> file, TensorFile about)
      : path_(std::move(path)), file_(std::move(file)), about_(std::move(about)) {}
  std::string path_;
  std::unique_ptr<world::ReadableFile> file_;
  TensorFile about_;
};

/// Enough to know a file again, every byte of it.
struct SavedTensorFile {
  std::uint64_t bytes = 0;
  std::uint32_t header_crc = 0;  ///< see TensorFile
};

/// Writes `path` whole or not at all, so that on Ok it outlives a crash: aside (`path` + `aside`), sync, rename, sync
/// of the directory. Who has the old file open or mapped keeps it. Errors: BadInput (what the format has no room for),
/// Unavailable (disk full); then nothing is left but the old file. `written` counts bytes as they go.
Result<SavedTensorFile> save_tensor_file(world::FileTarget& files, const std::string& path,
                                         std::span<const TensorData> tensors,
                                         std::map<std::string, std::string> metadata, unsigned threads,
                                         const std::string& aside = ".partial",
                                         std::atomic<std::uint64_t>* written = nullptr);

/// Fills the span with the bytes of the data buffer, as the header lays it out, from the given one on. Called once for
/// each part of the data, on several threads.
using DataBytes = std::function<Status(const SafetensorsHeader&, std::uint64_t, std::span<std::byte>)>;

/// As save_tensor_file for tensors that are not in memory; those of `tensors` have no places yet (see lay_out_tensors).
/// Needs a piece of the target's size for each thread. Errors: also those of `data`.
Status write_tensor_file(world::FileTarget& files, const std::string& path, std::vector<TensorInfo> tensors,
                         std::map<std::string, std::string> metadata, const DataBytes& data, unsigned threads,
                         const std::string& aside = ".partial");

}  // namespace holdfast::store
