// Laying tensors out and writing the header.
#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "store/dtype.h"
#include "store/json_text.h"
#include "store/safetensors.h"

namespace holdfast::store {
namespace {

constexpr std::uint64_t kPageBytes = 4096;  // data that begins on a page can be read and written past the page cache
constexpr std::uint64_t kOnPageFrom = std::uint64_t{1} << 20U;  // of data; smaller files would mostly be padding
constexpr std::size_t kAlignment = 8;

Status check_name(const std::string& name) {
  if (name.empty()) return Error(Code::BadInput, "a tensor has no name");
  if (name.size() > kTensorNameBytesMax) {
    return Error(Code::BadInput, "the name of a tensor has " + std::to_string(name.size()) + " bytes, at most " +
                                     std::to_string(kTensorNameBytesMax) + " are allowed");
  }
  if (name == "__metadata__") return Error(Code::BadInput, "the tensor name __metadata__ is taken by the format");
  if (name.find('\0') != std::string::npos) return Error(Code::BadInput, "a tensor's name holds a NUL byte");
  return Ok{};
}

Result<std::string> quoted(const std::string& text, const std::string& what) {
  std::optional<std::string> quote = json_quote(text);
  if (!quote) return Error(Code::BadInput, what + " is not UTF-8");
  return *std::move(quote);
}

Result<std::string> entry_text(const TensorInfo& tensor) {
  std::string text = TRY(quoted(tensor.name, "a tensor's name"), "write the header");
  text += ":{\"dtype\":\"" + tensor.dtype + "\",\"shape\":[";
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(tensor.shape[i]);
  }
  text += "],\"data_offsets\":[" + std::to_string(tensor.begin) + ',' + std::to_string(tensor.end) + "]}";
  return text;
}

Result<std::string> header_text(const SafetensorsHeader& header) {
  std::string text = "{";
  if (!header.metadata.empty()) {
    text += "\"__metadata__\":{";
    bool first = true;
    for (const auto& [key, value] : header.metadata) {
      if (!first) text += ',';
      first = false;
      text += TRY(quoted(key, "a metadata key"), "write the header")
      +':';
      text += TRY(quoted(value, "the metadata value of " + key), "write the header");
    }
    text += '}';
  }
  for (const TensorInfo& tensor : header.tensors) {
    if (text.size() > 1) text += ',';
    text += TRY(entry_text(tensor), "tensor " + tensor.name);
  }
  text += '}';
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  if (text.size() > kHeaderBytesMax) {
    return Error(Code::BadInput, "the header takes " + std::to_string(text.size()) + " bytes, the format allows " +
                                     std::to_string(kHeaderBytesMax) + ": write fewer tensors into one file");
  }
  return text;
}

bool placed_before(const TensorInfo& a, const TensorInfo& b) {
  const std::uint32_t a_bits = dtype_bits(a.dtype).value_or(0);
  const std::uint32_t b_bits = dtype_bits(b.dtype).value_or(0);
  return std::tie(b_bits, a.dtype, a.name) < std::tie(a_bits, b.dtype, b.name);
}

Status check_tensors(const std::vector<TensorInfo>& tensors) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const TensorInfo& tensor : tensors) {
    TRY(check_name(tensor.name), "lay out tensors");
    if (tensor.shape.size() > kDimensionsMax) {
      return Error(Code::BadInput,
                   "tensor " + tensor.name + " has more than " + std::to_string(kDimensionsMax) + " dimensions");
    }
    names.push_back(tensor.name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) return Error(Code::BadInput, "duplicate tensor " + std::string(*twice));
  return Ok{};
}

}  // namespace

Result<SafetensorsHeader> lay_out_tensors(std::vector<TensorInfo> tensors,
                                          std::map<std::string, std::string> metadata) {
  TRY(check_tensors(tensors), "safetensors");
  std::sort(tensors.begin(), tensors.end(), placed_before);
  std::uint64_t place = 0;
  for (TensorInfo& tensor : tensors) {
    const std::uint64_t bytes = TRY(tensor_bytes(tensor.dtype, tensor.shape), "tensor " + tensor.name);
    tensor.begin = place;
    if (__builtin_add_overflow(place, bytes, &place)) {
      return Error(Code::BadInput, "tensor " + tensor.name + " ends beyond what 64 bits can count");
    }
    tensor.end = place;
  }
  SafetensorsHeader header{std::move(metadata), std::move(tensors), 0};
  header.data_begin = sizeof(std::uint64_t) + TRY(header_text(header), "safetensors")
  .size();
  const std::uint64_t on_page = (header.data_begin + kPageBytes - 1) / kPageBytes * kPageBytes;
  if (place >= kOnPageFrom && on_page <= kHeaderBytesMax) header.data_begin = on_page;
  return header;
}

Result<Bytes> format_safetensors_header(const SafetensorsHeader& header) {
  std::string text = TRY(header_text(header), "safetensors");
  CHECK(header.data_begin >= sizeof(std::uint64_t) + text.size());
  text.resize(header.data_begin - sizeof(std::uint64_t), ' ');
  ByteWriter writer;
  writer.put(static_cast<std::uint64_t>(text.size()));
  writer.put_bytes(as_bytes(text));
  Bytes bytes = std::move(writer).take();
  return bytes;
}

}  // namespace holdfast::store
