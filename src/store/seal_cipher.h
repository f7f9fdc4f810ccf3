// AES-256-GCM, keyed once and used for many messages.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"

struct evp_cipher_ctx_st;  // OpenSSL's

namespace holdfast::store {

using SealTag = std::array<std::byte, 16>;

/// What a message is, and which of its kind. Never twice under one key.
struct SealNonce {
  std::uint32_t kind = 0;
  std::uint64_t index = 0;
};

/// One thread at a time. `bytes` and `out` are as long, at most 2 GiB, and either the same memory or apart.
class SealCipher {
 public:
  enum class Use { Encrypt, Decrypt };
  SealCipher(BytesView key, Use use);

  /// `about` is authenticated too, and not part of the output.
  SealTag encrypt(SealNonce nonce, BytesView about, BytesView bytes, std::span<std::byte> out);
  /// False: not what was encrypted with this key, nonce and `about`; then `out` holds zeros.
  bool decrypt(SealNonce nonce, BytesView about, BytesView bytes, const SealTag& tag, std::span<std::byte> out);

 private:
  struct Free {
    void operator()(evp_cipher_ctx_st* context) const;
  };
  std::unique_ptr<evp_cipher_ctx_st, Free> context_;
};

}  // namespace holdfast::store
