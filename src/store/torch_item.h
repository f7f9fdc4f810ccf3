// One tensor as a file of torch.save, in the form that an item of a DCP folder has.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "store/torch_dtype.h"

namespace holdfast::store {

/// What stands around the tensor's bytes; all sizes are known before the bytes are.
class TorchItem {
 public:
  /// `shape` in torch's elements.
  TorchItem(const TorchDtype& dtype, std::span<const std::uint64_t> shape);

  BytesView head() const { return head_; }
  std::uint64_t data_bytes() const { return data_bytes_; }
  /// `crc`: crc32 of the data.
  Bytes tail(std::uint32_t crc) const;
  std::uint64_t bytes() const;

 private:
  struct Entry {
    std::string name;
    std::uint32_t crc = 0;
    std::uint64_t size = 0;
    std::uint64_t header = 0;  ///< where its header begins
  };
  void add(const std::string& name, BytesView data, std::vector<std::byte>& out);
  void begin_data(std::vector<std::byte>& out);

  std::vector<Entry> entries_;  ///< the data's is the last
  Bytes head_;
  std::uint64_t data_bytes_ = 0;
};

}  // namespace holdfast::store
