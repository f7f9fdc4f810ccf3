// Tensors kept in a file or folder of any kind that is read here: ours and other programs'. docs/convert.md.
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
#include "store/safetensors.h"
#include "world/files.h"

namespace holdfast::store {

constexpr const char* kSafetensorsKind = "safetensors";
constexpr const char* kTorchKind = "torch";
constexpr const char* kTensorizerKind = "tensorizer";
constexpr const char* kDcpKind = "dcp";

struct ArchivedTensor {
  std::string name;
  std::string dtype;  ///< as safetensors spells it; "C128" and "C32", which it lacks, as well
  std::vector<std::uint64_t> shape;
  std::uint64_t bytes = 0;
  std::string tied_to;     ///< an earlier tensor that shows the same elements of the same memory; else empty
  std::string unreadable;  ///< why its elements can't be had; empty where they can
};

/// What is in the file stays there until it is read. Thread-safe. Lives no longer than the FileSource it is from.
class TensorArchive {
 public:
  virtual ~TensorArchive() = default;

  const std::string& path() const { return path_; }
  /// One of the above.
  const std::string& kind() const { return kind_; }
  /// In the file's order; no name twice.
  std::span<const ArchivedTensor> tensors() const { return tensors_; }
  /// What else it holds by name: numbers, texts. They are listed only.
  std::span<const std::string> others() const { return others_; }
  /// Text that the file carries about itself.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// Of all that it is kept in.
  std::uint64_t file_bytes() const { return file_bytes_; }
  /// Whether there are checksums to verify the elements by.
  bool has_checksums() const { return has_checksums_; }

  /// The elements of tensor `index`, row-major and little-endian, into `out` of its size, checked in every way that the
  /// kind of file allows. On an error `out` holds anything. Errors: Corrupt, BadInput, Unavailable; they name the file
  /// and the tensor.
  Status read(std::size_t index, std::span<std::byte> out);

 protected:
  TensorArchive(std::string path, std::string kind) : path_(std::move(path)), kind_(std::move(kind)) {}
  virtual Status read_elements(std::size_t index, std::span<std::byte> out) = 0;
  /// Refuses names that no tensor can have, and two that are alike. To be called once all are known.
  Status check_tensors() const;

  std::vector<ArchivedTensor> tensors_;
  std::vector<std::string> others_;
  std::map<std::string, std::string> metadata_;
  std::uint64_t file_bytes_ = 0;
  bool has_checksums_ = true;

 private:
  std::string path_;
  std::string kind_;
};

/// Fills all of `out` with the elements of the tensor with that index, row-major.
using FillTensor = std::function<Status(std::size_t, std::span<std::byte>)>;

/// Told by a file's first bytes, or by a `.metadata` in a folder; what is none of the others is called safetensors.
/// Errors: NotFound, BadInput (a kind that is not read), Unavailable.
Result<std::string> archive_kind(world::FileSource& files, const std::string& path);

/// Opens a file or folder of any kind. `secret`: what an encrypted
/// tensorizer file was encrypted with, a text or a key of 32 bytes. Errors name the file and the mend: NotFound,
/// BadInput (a kind that is not read, or damaged), Denied (encrypted and no secret), Unavailable.
Result<std::unique_ptr<TensorArchive>> open_archive(world::FileSource& files, const std::string& path,
                                                    const std::optional<std::string>& secret);

struct LoadedArchive {
  std::vector<TensorInfo> tensors;          ///< `begin` and `end` count from the block's start; tied ones are not here
  std::map<std::string, std::string> tied;  ///< name -> that of the tensor whose memory it shares
  AlignedBytes block;
};

/// Errors: BadInput where one of them is not readable, or where views of the same memory would take far more of it than
/// the file has.
Status check_memory(const TensorArchive& archive, std::span<const std::size_t> indices);

/// Tensors in memory: these, or all. Errors: as read and check_memory; BadInput for a name that is not there.
Result<LoadedArchive> load_archive(TensorArchive& archive, const std::optional<std::vector<std::string>>& names,
                                   unsigned threads);

/// Reads every tensor and drops it; needs as much memory as the largest ones that are read at a time. Errors: as read.
Status verify_archive(TensorArchive& archive, unsigned threads);

}  // namespace holdfast::store
