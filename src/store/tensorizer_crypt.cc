#include "store/tensorizer_crypt.h"

#include <sodium.h>

#include <algorithm>

#include "base/check.h"

namespace holdfast::store {
namespace {

constexpr std::uint64_t kMemoryBytesMax = std::uint64_t{1} << 30U;
constexpr std::uint64_t kOperationsMax = 64;

Error bad(const std::string& why) { return {Code::BadInput, why}; }

unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* raw(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }

Result<TensorizerKey> derive(const std::string& secret, const TensorizerDerivation& how) {
  if (how.algorithm != crypto_pwhash_ALG_ARGON2ID13 || how.salt.size() != crypto_pwhash_SALTBYTES) {
    return bad("its key is derived in an unknown way");
  }
  if (how.memory_bytes > kMemoryBytesMax || how.operations > kOperationsMax ||
      how.memory_bytes < crypto_pwhash_MEMLIMIT_MIN || how.operations < crypto_pwhash_OPSLIMIT_MIN) {
    return bad("its key takes " + std::to_string(how.memory_bytes) + " bytes and " + std::to_string(how.operations) +
               " rounds to derive, at most " + std::to_string(kMemoryBytesMax) + " and " +
               std::to_string(kOperationsMax) + " are spent");
  }
  TensorizerKey key{};
  if (crypto_pwhash(raw(key.data()), key.size(), secret.data(), secret.size(), raw(how.salt.data()), how.operations,
                    how.memory_bytes, how.algorithm) != 0) {
    return Error(Code::Unavailable, "not enough memory to derive its key");
  }
  return key;
}

}  // namespace

TensorizerKeys::~TensorizerKeys() {
  sodium_memzero(secret_.data(), secret_.size());
  for (Derived& each : derived_) sodium_memzero(each.key.data(), each.key.size());
}

Result<TensorizerKey> TensorizerKeys::key(const TensorizerCrypt& crypt) {
  static const bool ready = sodium_init() >= 0;
  CHECK(ready);
  if (!crypt.derivation) {
    TensorizerKey key{};
    if (secret_.size() != key.size()) {
      return bad("encrypted with a key of 32 bytes, but that given has " + std::to_string(secret_.size()));
    }
    std::copy_n(reinterpret_cast<const std::byte*>(secret_.data()), key.size(), key.begin());
    return key;
  }
  const std::lock_guard lock(mutex_);
  for (const Derived& each : derived_) {
    if (each.how == *crypt.derivation) return each.key;
  }
  if (!derived_.empty()) return bad("its tensors are encrypted with different keys");  // each would cost as much again
  const TensorizerKey key = TRY(derive(secret_, *crypt.derivation), "key");
  derived_.push_back({*crypt.derivation, key});
  return key;
}

Status decrypt_tensorizer(const TensorizerCrypt& crypt, const TensorizerKey& key, std::span<std::byte> data) {
  std::array<std::byte, 24> nonce = crypt.nonce;
  for (const auto& mac : crypt.macs) {
    const std::size_t size =
        crypt.chunk_bytes == 0 ? data.size() : std::min<std::size_t>(crypt.chunk_bytes, data.size());
    const std::span<std::byte> chunk = data.first(size);
    if (crypto_secretbox_open_detached(raw(chunk.data()), raw(chunk.data()), raw(mac.data()), chunk.size(),
                                       raw(nonce.data()), raw(key.data())) != 0) {
      return Error(Code::Corrupt, "the key does not fit, or the data is damaged");
    }
    sodium_increment(raw(nonce.data()), nonce.size());
    data = data.subspan(size);
  }
  return Ok{};
}

}  // namespace holdfast::store
