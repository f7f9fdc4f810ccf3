// Reading a header from bytes that nobody vouches for: one pass, no recursion, no allocation beyond the header's size.
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_set>

#include "store/dtype.h"
#include "store/safetensors.h"

namespace holdfast::store {
namespace {

constexpr std::size_t kLengthBytes = sizeof(std::uint64_t);

/// Follows the few levels a header has and refuses everything else, with why in `error()`.
class HeaderSax : public nlohmann::json_sax<nlohmann::json> {
 public:
  const std::string& error() const { return error_; }
  SafetensorsHeader take() && { return std::move(header_); }

  bool start_object(std::size_t) override {
    if (at_ == At::Start) return enter(At::Top);
    if (at_ == At::Top && key_ == "__metadata__")
      return metadata_seen_ ? refuse("__metadata__ twice") : open_metadata();
    if (at_ == At::Top) return open_entry();
    return unexpected("an object");
  }

  bool key(string_t& key) override {
    if (at_ == At::Entry) {
      if (key != "dtype" && key != "shape" && key != "data_offsets") {
        return refuse(where() + ": unknown key " + shown(key));
      }
      if (!fields_.insert(key).second) return refuse(where() + ": " + key + " twice");
    }
    key_ = std::move(key);
    return true;
  }

  bool end_object() override {
    if (at_ == At::Entry) return close_entry();
    return enter(At::Top);
  }

  bool start_array(std::size_t) override {
    if (at_ == At::Entry && key_ == "shape") return enter(At::Shape);
    if (at_ == At::Entry && key_ == "data_offsets") return enter(At::Offsets);
    return unexpected("a list");
  }

  bool end_array() override { return enter(At::Entry); }

  bool string(string_t& text) override {
    if (at_ == At::Metadata) {
      if (!header_.metadata.emplace(key_, std::move(text)).second)
        return refuse("metadata key " + shown(key_) + " twice");
      return true;
    }
    if (at_ == At::Entry && key_ == "dtype") {
      if (!dtype_bits(text)) return refuse(where() + ": unknown dtype " + shown(text));
      tensor_.dtype = std::move(text);
      return true;
    }
    return unexpected("a text");
  }

  bool number_unsigned(number_unsigned_t number) override {
    if (at_ == At::Shape) {
      if (tensor_.shape.size() == kDimensionsMax) return refuse(where() + ": more than 64 dimensions");
      tensor_.shape.push_back(number);
      return true;
    }
    if (at_ == At::Offsets) {
      if (offsets_ == 2) return refuse(where() + ": data_offsets has more than two numbers");
      (offsets_ == 0 ? tensor_.begin : tensor_.end) = number;
      ++offsets_;
      return true;
    }
    return unexpected("a number");
  }

  bool number_integer(number_integer_t) override { return unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t& text) override {
    return unexpected("the number " + shown(text) + ", which is no 64-bit count");
  }
  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool binary(binary_t&) override { return unexpected("binary"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    return refuse("not JSON at byte " + std::to_string(kLengthBytes + position));
  }

 private:
  enum class At { Start, Top, Metadata, Entry, Shape, Offsets };

  bool enter(At at) {
    at_ = at;
    return true;
  }
  bool refuse(std::string why) {
    if (error_.empty()) error_ = std::move(why);
    return false;
  }
  bool unexpected(const std::string& what) { return refuse(where() + ": " + what + " where none belongs"); }

  /// Names come from outside: cut to what fits a line.
  static std::string shown(const std::string& text) { return text.size() <= 200 ? text : text.substr(0, 200) + "..."; }
  std::string where() const {
    if (at_ == At::Entry || at_ == At::Shape || at_ == At::Offsets) return "tensor " + shown(tensor_.name);
    return at_ == At::Start ? "the header" : shown(key_);
  }

  bool open_metadata() {
    metadata_seen_ = true;
    return enter(At::Metadata);
  }

  bool open_entry() {
    if (key_.size() > kTensorNameBytesMax) return refuse("a tensor's name is longer than 65535 bytes");
    if (!names_.insert(key_).second) return refuse("duplicate tensor " + shown(key_));
    tensor_ = TensorInfo{};
    tensor_.name = key_;
    offsets_ = 0;
    fields_.clear();
    return enter(At::Entry);
  }

  bool close_entry() {
    if (fields_.size() != 3) return refuse(where() + ": dtype, shape or data_offsets is missing");
    if (offsets_ != 2) return refuse(where() + ": data_offsets needs two numbers");
    header_.tensors.push_back(std::move(tensor_));
    return enter(At::Top);
  }

  At at_ = At::Start;
  SafetensorsHeader header_;
  TensorInfo tensor_;
  std::string key_;
  std::string error_;
  std::unordered_set<std::string> names_;
  std::unordered_set<std::string> fields_;
  int offsets_ = 0;
  bool metadata_seen_ = false;
};

std::string range_text(const TensorInfo& tensor) {
  return tensor.name + " (" + std::to_string(tensor.begin) + ".." + std::to_string(tensor.end) + ")";
}

/// What its own numbers say, before any of them is used.
Status check_tensor(const TensorInfo& tensor, std::uint64_t data_bytes) {
  if (tensor.begin > tensor.end)
    return Error(Code::BadInput, "tensor " + range_text(tensor) + " ends before it begins");
  if (tensor.end > data_bytes) {
    return Error(Code::BadInput, "tensor " + range_text(tensor) + " lies outside the file, which has " +
                                     std::to_string(data_bytes) + " bytes of data: is it cut off?");
  }
  const std::uint64_t bytes = TRY(tensor_bytes(tensor.dtype, tensor.shape), "tensor " + tensor.name);
  if (bytes != tensor.end - tensor.begin) {
    return Error(Code::BadInput, "tensor " + range_text(tensor) + " of shape " + shape_text(tensor.shape) + " and " +
                                     tensor.dtype + " needs " + std::to_string(bytes) + " bytes");
  }
  return Ok{};
}

/// `tensors` sorted by place: each begins where the last one ended, and the last ends with the file.
Status check_coverage(const std::vector<TensorInfo>& tensors, std::uint64_t data_bytes) {
  const TensorInfo* before = nullptr;
  std::uint64_t covered = 0;
  for (const TensorInfo& tensor : tensors) {
    const std::string after = before ? range_text(*before) : "the start of the data";
    if (tensor.begin < covered) {
      return Error(Code::BadInput, "tensors " + after + " and " + range_text(tensor) + " overlap");
    }
    if (tensor.begin > covered) {
      return Error(Code::BadInput, "a hole between " + after + " and " + range_text(tensor));
    }
    covered = tensor.end;
    before = &tensor;
  }
  if (covered != data_bytes) {
    return Error(Code::BadInput, "the tensors end at byte " + std::to_string(covered) + " of the data, the file has " +
                                     std::to_string(data_bytes) + ": bytes that belong to no tensor");
  }
  return Ok{};
}

Result<SafetensorsHeader> parse_header_text(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos || text[start] != '{') {
    return Error(Code::BadInput, "the header does not begin with {: not a safetensors file");
  }
  // The parser takes a NUL for the end of the text and would leave what follows unread.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return Error(Code::BadInput, "a NUL byte in the header at byte " + std::to_string(kLengthBytes + nul));
  }
  HeaderSax sax;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &sax)) return Error(Code::BadInput, sax.error());
  return std::move(sax).take();
}

}  // namespace

Result<std::uint64_t> safetensors_prefix_bytes(BytesView first, std::uint64_t file_size) {
  if (file_size < kLengthBytes || first.size() < kLengthBytes) {
    return Error(Code::BadInput, "the file has fewer than 8 bytes: not a safetensors file");
  }
  const auto length = ByteReader(first).get<std::uint64_t>();
  if (length > kHeaderBytesMax) {
    return Error(Code::BadInput, "the header claims " + std::to_string(length) + " bytes, the format allows " +
                                     std::to_string(kHeaderBytesMax));
  }
  if (length > file_size - kLengthBytes) {
    return Error(Code::BadInput, "the header claims " + std::to_string(length) + " bytes, the file has " +
                                     std::to_string(file_size) + " in all");
  }
  return kLengthBytes + length;
}

Result<SafetensorsHeader> parse_safetensors_header(BytesView prefix, std::uint64_t file_size) {
  const std::uint64_t prefix_bytes = TRY(safetensors_prefix_bytes(prefix, file_size), "safetensors");
  if (prefix.size() < prefix_bytes) return Error(Code::BadInput, "safetensors: the header is cut off");
  const BytesView text = prefix.first(static_cast<std::size_t>(prefix_bytes)).subspan(kLengthBytes);
  SafetensorsHeader header = TRY(parse_header_text(as_text(text)), "safetensors");
  header.data_begin = prefix_bytes;
  const std::uint64_t data_bytes = file_size - prefix_bytes;
  for (const TensorInfo& tensor : header.tensors) TRY(check_tensor(tensor, data_bytes), "safetensors");
  std::sort(header.tensors.begin(), header.tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  TRY(check_coverage(header.tensors, data_bytes), "safetensors");
  return header;
}

}  // namespace holdfast::store
