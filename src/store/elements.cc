#include "store/elements.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>

#include "base/check.h"
#include "store/dtype.h"

namespace holdfast::store {
namespace {

/// What the codes with all exponent bits set, or the code of a negative zero, stand for.
enum class Special { None, Ieee, NanAtTop, NanAtNegativeZero };

/// A small floating-point type: sign, exponent, mantissa.
struct Small {
  std::string_view name;
  unsigned exponent_bits;
  unsigned mantissa_bits;
  int bias;
  Special special;
  unsigned bits() const { return 1 + exponent_bits + mantissa_bits; }
};

constexpr std::array kSmall = std::to_array<Small>({
    {"F16", 5, 10, 15, Special::Ieee},
    {"BF16", 8, 7, 127, Special::Ieee},
    {"F8_E5M2", 5, 2, 15, Special::Ieee},
    {"F8_E4M3", 4, 3, 7, Special::NanAtTop},
    {"F8_E4M3FNUZ", 4, 3, 8, Special::NanAtNegativeZero},
    {"F8_E5M2FNUZ", 5, 2, 16, Special::NanAtNegativeZero},
    {"F6_E2M3", 2, 3, 1, Special::None},
    {"F6_E3M2", 3, 2, 3, Special::None},
    {"F4", 2, 1, 1, Special::None},
});

constexpr long double kNan = std::numeric_limits<long double>::quiet_NaN();
constexpr long double kInfinity = std::numeric_limits<long double>::infinity();

long double small_value(const Small& type, std::uint32_t code) {
  const std::uint32_t mantissa = code & ((1U << type.mantissa_bits) - 1);
  const std::uint32_t exponent_max = (1U << type.exponent_bits) - 1;
  const std::uint32_t exponent = code >> type.mantissa_bits & exponent_max;
  const bool negative = code >> (type.bits() - 1) != 0;
  const long double sign = negative ? -1 : 1;
  const bool top = exponent == exponent_max;
  if (type.special == Special::Ieee && top) return mantissa != 0 ? kNan : sign * kInfinity;
  if (type.special == Special::NanAtTop && top && mantissa == (1U << type.mantissa_bits) - 1) return kNan;
  if (type.special == Special::NanAtNegativeZero && negative && exponent == 0 && mantissa == 0) return kNan;
  const std::uint32_t whole = exponent == 0 ? mantissa : mantissa | 1U << type.mantissa_bits;
  const int power = static_cast<int>(exponent == 0 ? 1 : exponent) - type.bias - static_cast<int>(type.mantissa_bits);
  return sign * std::ldexp(static_cast<long double>(whole), power);
}

long double power_of_two(std::uint32_t code) {  // F8_E8M0
  return code == 0xFF ? kNan : std::ldexp(1.0L, static_cast<int>(code) - 127);
}

template <typename T>
std::vector<long double> decode_as(BytesView bytes) {
  std::vector<long double> values(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value{};
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<long double>(value);
  }
  return values;
}

/// By a table of all codes.
std::vector<long double> decode_small(const Small& type, BytesView bytes) {
  std::vector<long double> table(std::size_t{1} << type.bits());
  for (std::uint32_t code = 0; code < table.size(); ++code) table[code] = small_value(type, code);
  std::vector<long double> values(bytes.size() * 8 / type.bits());
  std::size_t next = 0;
  std::uint32_t held = 0;
  unsigned bits = 0;
  for (const std::byte byte : bytes) {
    held |= static_cast<std::uint32_t>(byte) << bits;
    for (bits += 8; bits >= type.bits(); bits -= type.bits()) {
      values[next++] = table[held & (table.size() - 1)];
      held >>= type.bits();
    }
  }
  return values;
}

const Small* small_type(std::string_view dtype) {
  for (const Small& type : kSmall) {
    if (type.name == dtype) return &type;
  }
  return nullptr;
}

template <typename T>
std::string shortest(T value) {
  std::array<char, 64> text{};
  const auto [end, failure] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), failure == std::errc{} ? end : text.data()};
}

std::string number_text(std::string_view dtype, long double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (dtype == "BOOL") return value != 0 ? "true" : "false";
  if (dtype == "F64") return shortest(static_cast<double>(value));
  if (dtype == "F32" || dtype == "C64") return shortest(static_cast<float>(value));
  std::array<char, 64> text{};
  const bool whole = dtype.starts_with('I') || dtype.starts_with('U');
  const int digits = dtype == "F16" ? 5 : (dtype == "BF16" ? 4 : 6);
  std::snprintf(text.data(), text.size(), whole ? "%.*Lf" : "%.*Lg", whole ? 0 : digits, value);
  return text.data();
}

}  // namespace

unsigned parts_of(std::string_view dtype) { return dtype == "C64" ? 2 : 1; }

std::vector<long double> decode_elements(std::string_view dtype, BytesView bytes) {
  if (const Small* type = small_type(dtype); type != nullptr) return decode_small(*type, bytes);
  if (dtype == "F8_E8M0") {
    std::vector<long double> values;
    values.reserve(bytes.size());
    for (const std::byte code : bytes) values.push_back(power_of_two(static_cast<std::uint32_t>(code)));
    return values;
  }
  if (dtype == "F32" || dtype == "C64") return decode_as<float>(bytes);
  if (dtype == "F64") return decode_as<double>(bytes);
  if (dtype == "I64") return decode_as<std::int64_t>(bytes);
  if (dtype == "U64") return decode_as<std::uint64_t>(bytes);
  if (dtype == "I32") return decode_as<std::int32_t>(bytes);
  if (dtype == "U32") return decode_as<std::uint32_t>(bytes);
  if (dtype == "I16") return decode_as<std::int16_t>(bytes);
  if (dtype == "U16") return decode_as<std::uint16_t>(bytes);
  if (dtype == "I8") return decode_as<std::int8_t>(bytes);
  CHECK(dtype == "U8" || dtype == "BOOL");
  return decode_as<std::uint8_t>(bytes);
}

std::string element_text(std::string_view dtype, const long double* parts) {
  if (parts_of(dtype) == 1) return number_text(dtype, *parts);
  const std::string imaginary = number_text(dtype, parts[1]);
  return number_text(dtype, parts[0]) + (imaginary.starts_with('-') ? "" : "+") + imaginary + "i";
}

}  // namespace holdfast::store
