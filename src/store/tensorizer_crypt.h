// Decrypting a tensorizer file: XSalsa20-Poly1305 in chunks, its key given or derived from a text by Argon2id.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "store/tensorizer_header.h"

namespace holdfast::store {

using TensorizerKey = std::array<std::byte, 32>;

/// The keys that one secret gives; each is derived once. Thread-safe.
class TensorizerKeys {
 public:
  explicit TensorizerKeys(std::string secret) : secret_(std::move(secret)) {}
  ~TensorizerKeys();
  TensorizerKeys(const TensorizerKeys&) = delete;
  TensorizerKeys& operator=(const TensorizerKeys&) = delete;

  /// Where `crypt` derives its key, the secret is the text for that; else it is the key. Takes as long and as much
  /// memory (at most 1 GiB) as the file's writer chose. Errors: BadInput (no such key, costs beyond bounds).
  Result<TensorizerKey> key(const TensorizerCrypt& crypt);

 private:
  struct Derived {
    TensorizerDerivation how;
    TensorizerKey key;
  };
  std::string secret_;
  std::mutex mutex_;
  std::vector<Derived> derived_;
};

/// In place. Errors: Corrupt (another key, or other data).
Status decrypt_tensorizer(const TensorizerCrypt& crypt, const TensorizerKey& key, std::span<std::byte> data);

}  // namespace holdfast::store
