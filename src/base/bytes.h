// Writing and reading bounded binary records: little-endian integers, length-prefixed byte strings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace holdfast {

using Bytes = std::vector<std::byte>;
using BytesView = std::span<const std::byte>;

inline BytesView as_bytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }
inline std::string_view as_text(BytesView bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

class ByteWriter {
 public:
  template <typename Integer>
    requires std::is_integral_v<Integer> || std::is_enum_v<Integer>
  void put(Integer value) {
    const auto* raw = reinterpret_cast<const std::byte*>(&value);
    out_.insert(out_.end(), raw, raw + sizeof value);
  }
  void put_double(double value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    put(bits);
  }
  void put_bytes(BytesView raw) { out_.insert(out_.end(), raw.begin(), raw.end()); }
  void put_text(std::string_view text) {
    put(static_cast<std::uint32_t>(text.size()));
    put_bytes(as_bytes(text));
  }
  Bytes take() && { return std::move(out_); }

 private:
  Bytes out_;
};

/// Reads what ByteWriter wrote. Never reads past the end, never allocates more than the input holds:
/// after the first wrong read `ok()` is false and every further read gives zero.
class ByteReader {
 public:
  explicit ByteReader(BytesView bytes) : rest_(bytes) {}
  bool ok() const { return ok_; }
  /// Everything was read and nothing was wrong.
  bool done() const { return ok_ && rest_.empty(); }

  template <typename Integer>
    requires std::is_integral_v<Integer> || std::is_enum_v<Integer>
  Integer get() {
    Integer value{};
    if (rest_.size() < sizeof value) {
      fail();
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_ = rest_.subspan(sizeof value);
    return value;
  }
  bool get_bool() { return get<std::uint8_t>() != 0; }
  double get_double() {
    const auto bits = get<std::uint64_t>();
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  std::string get_text() {
    const auto size = get<std::uint32_t>();
    if (rest_.size() < size) {
      fail();
      return {};
    }
    std::string text(as_text(rest_.first(size)));
    rest_ = rest_.subspan(size);
    return text;
  }

 private:
  void fail() {
    ok_ = false;
    rest_ = {};
  }
  BytesView rest_;
  bool ok_ = true;
};

}  // namespace holdfast
