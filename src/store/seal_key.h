// The key that seals tensor files: 256 bits that the user keeps.
#pragma once

#include <array>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace holdfast::store {

/// Tells keys apart and gives nothing of them away.
using SealKeyId = std::array<std::byte, 8>;

class SealKey {
 public:
  static constexpr std::size_t kBytes = 32;
  explicit SealKey(std::span<const std::byte, kBytes> bytes);
  ~SealKey();  ///< leaves nothing of the key in memory
  SealKey(const SealKey&) = default;
  SealKey& operator=(const SealKey&) = default;

  BytesView bytes() const { return bytes_; }
  SealKeyId id() const;

 private:
  std::array<std::byte, kBytes> bytes_;
};

/// As hexadecimal digits.
std::string key_id_text(const SealKeyId& id);

/// A key as users keep it: 64 hexadecimal digits or 44 characters of base64, white space around them ignored; where
/// `may_be_raw`, its 32 bytes as they are too. Errors: BadInput, which tells nothing of what was given.
Result<SealKey> parse_seal_key(BytesView given, bool may_be_raw);

}  // namespace holdfast::store
