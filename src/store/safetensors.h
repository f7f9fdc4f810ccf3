// The header of a safetensors file: which tensors it holds, and where. Strict in what it reads, canonical in what it
// writes. Layout: 8 bytes little-endian header length, the JSON header, the data buffer to the end of the file.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace holdfast::store {

constexpr std::uint64_t kHeaderBytesMax = 100'000'000;  ///< the format's own cap on the JSON header
constexpr std::size_t kTensorNameBytesMax = 65'535;
constexpr std::size_t kDimensionsMax = 64;

struct TensorInfo {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;  ///< first byte, counted from the start of the data buffer
  std::uint64_t end = 0;    ///< one past the last byte
  friend bool operator==(const TensorInfo&, const TensorInfo&) = default;
};

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<TensorInfo> tensors;  ///< by place in the data buffer
  std::uint64_t data_begin = 0;     ///< where in the file the data buffer starts

  std::uint64_t data_bytes() const { return tensors.empty() ? 0 : tensors.back().end; }
  std::uint64_t file_bytes() const { return data_begin + data_bytes(); }
  friend bool operator==(const SafetensorsHeader&, const SafetensorsHeader&) = default;
};

/// Bytes before the data buffer, told from a file's first 8. Errors: BadInput (beyond the file's end or the cap), so
/// nobody allocates more than the file holds.
Result<std::uint64_t> safetensors_prefix_bytes(BytesView first, std::uint64_t file_size);

/// `prefix` is the file's start up to the data buffer, or more. Every tensor lies inside the file, has the size its
/// shape asks for, and the data buffer has no overlap, hole or trailing byte. Errors: BadInput, naming the tensor.
Result<SafetensorsHeader> parse_safetensors_header(BytesView prefix, std::uint64_t file_size);

/// Gives each tensor its place, widest elements first and then by name, so that each is aligned to its element; `begin`
/// and `end` are ignored. Errors: BadInput (name twice, not UTF-8, empty, too long or with a NUL; dtype; size; header
/// above the cap).
Result<SafetensorsHeader> lay_out_tensors(std::vector<TensorInfo> tensors, std::map<std::string, std::string> metadata);

/// The bytes before the data buffer for a header that `lay_out_tensors` made: padded with spaces to a multiple of 8,
/// and of 4096 where there is 1 MiB of data or more.
Result<Bytes> format_safetensors_header(const SafetensorsHeader& header);

}  // namespace holdfast::store
