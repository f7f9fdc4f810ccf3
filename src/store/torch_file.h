// A file of torch.save: a zip file with a pickle and the storages that it speaks of.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "store/archive.h"
#include "store/torch_tensor.h"
#include "store/zip_file.h"

namespace holdfast::store {

/// The zip file's parts: its pickle, and the storages by their key.
class TorchZip {
 public:
  /// Errors: BadInput, Corrupt.
  static Result<TorchZip> open(const FileSlice& slice);

  const Pickle& pickle() const { return pickle_; }
  /// Where the tensor's storage lies. Errors: BadInput (not there, or of another size).
  Result<ZipEntry> storage(const TorchTensor& tensor) const;
  /// Its elements row-major. `checked`: the storage's checksum was compared before, and only what is needed is read.
  Status read(const TorchTensor& tensor, std::span<std::byte> out, bool checked) const;

 private:
  TorchZip(ZipFile zip, Pickle pickle, std::string folder)
      : zip_(std::move(zip)), pickle_(std::move(pickle)), folder_(std::move(folder)) {}

  ZipFile zip_;
  Pickle pickle_;
  std::string folder_;  ///< that all its entries are in, with the slash
};

/// Tensors are called by their path in dicts, lists and tuples, joined by dots; one alone is called "tensor".
Result<std::unique_ptr<TensorArchive>> open_torch_file(std::unique_ptr<world::ReadableFile> file,
                                                       const std::string& path);

}  // namespace holdfast::store
