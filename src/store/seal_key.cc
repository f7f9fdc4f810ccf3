#include "store/seal_key.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <optional>

#include "world/hmac.h"

namespace holdfast::store {
namespace {

constexpr std::string_view kSpace = " \t\r\n";
constexpr std::string_view kIdOf = "holdfast.sealed key id";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::optional<unsigned> hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return std::nullopt;
}

using KeyBytes = std::array<std::byte, SealKey::kBytes>;

bool read_hex(std::string_view digits, KeyBytes& key) {
  if (digits.size() != 2 * key.size()) return false;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const auto high = hex_value(digits[2 * i]);
    const auto low = hex_value(digits[2 * i + 1]);
    if (!high || !low) return false;
    key[i] = static_cast<std::byte>(*high * 16 + *low);
  }
  return true;
}

bool read_base64(std::string_view text, KeyBytes& key) {
  constexpr std::size_t kCharacters = 44;  // the last is padding
  if (text.size() != kCharacters || text.back() != '=' || text[kCharacters - 2] == '=') return false;
  std::array<unsigned char, SealKey::kBytes + 1> decoded{};
  const int size = EVP_DecodeBlock(decoded.data(), reinterpret_cast<const unsigned char*>(text.data()), kCharacters);
  const bool good = size == static_cast<int>(decoded.size());
  if (good) std::copy_n(reinterpret_cast<const std::byte*>(decoded.data()), key.size(), key.begin());
  OPENSSL_cleanse(decoded.data(), decoded.size());
  return good;
}

}  // namespace

SealKey::SealKey(std::span<const std::byte, kBytes> bytes) : bytes_() {
  std::copy(bytes.begin(), bytes.end(), bytes_.begin());
}

SealKey::~SealKey() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

SealKeyId SealKey::id() const {
  const world::Mac mac = world::Hmac(bytes_).of({as_bytes(kIdOf)});
  SealKeyId id{};
  std::copy_n(mac.begin(), id.size(), id.begin());
  return id;
}

std::string key_id_text(const SealKeyId& id) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : id) {
    text += digits[std::to_integer<unsigned>(byte) >> 4U];
    text += digits[std::to_integer<unsigned>(byte) & 15U];
  }
  return text;
}

Result<SealKey> parse_seal_key(BytesView given, bool may_be_raw) {
  if (may_be_raw && given.size() == SealKey::kBytes) return SealKey(given.first<SealKey::kBytes>());
  KeyBytes key{};
  const std::string_view text = trimmed(as_text(given));
  if (!read_hex(text, key) && !read_base64(text, key)) {
    return Error(Code::BadInput, std::string("a key is ") + (may_be_raw ? "32 raw bytes, " : "") +
                                     "64 hexadecimal digits or 44 characters of base64, not " +
                                     std::to_string(given.size()) +
                                     " bytes of something else; make one with: " + "openssl rand -hex 32");
  }
  SealKey parsed(key);
  OPENSSL_cleanse(key.data(), key.size());
  return parsed;
}

}  // namespace holdfast::store
