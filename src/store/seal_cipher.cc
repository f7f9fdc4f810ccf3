#include "store/seal_cipher.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace holdfast::store {
namespace {

constexpr std::size_t kKeyBytes = 32;
using Iv = std::array<unsigned char, 12>;

const EVP_CIPHER* algorithm() {
  static const EVP_CIPHER* const fetched = EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr);  // slow: once
  CHECK(fetched != nullptr);
  return fetched;
}

const unsigned char* raw(BytesView bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }
unsigned char* raw(std::span<std::byte> bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); }

int length(BytesView bytes) {
  CHECK(bytes.size() <= static_cast<std::size_t>(std::numeric_limits<int>::max()));
  return static_cast<int>(bytes.size());
}

Iv iv_of(SealNonce nonce) {
  Iv iv{};
  static_assert(sizeof nonce.kind + sizeof nonce.index == sizeof(Iv));
  std::memcpy(iv.data(), &nonce.kind, sizeof nonce.kind);
  std::memcpy(iv.data() + sizeof nonce.kind, &nonce.index, sizeof nonce.index);
  return iv;
}

}  // namespace

void SealCipher::Free::operator()(evp_cipher_ctx_st* context) const { EVP_CIPHER_CTX_free(context); }

SealCipher::SealCipher(BytesView key, Use use) : context_(EVP_CIPHER_CTX_new()) {
  CHECK(context_ != nullptr && key.size() == kKeyBytes);
  const int encrypts = use == Use::Encrypt ? 1 : 0;
  CHECK(EVP_CipherInit_ex(context_.get(), algorithm(), nullptr, raw(key), nullptr, encrypts) == 1);
}

SealTag SealCipher::encrypt(SealNonce nonce, BytesView about, BytesView bytes, std::span<std::byte> out) {
  CHECK(out.size() == bytes.size());
  const Iv iv = iv_of(nonce);
  int wrote = 0;
  CHECK(EVP_EncryptInit_ex(context_.get(), nullptr, nullptr, nullptr, iv.data()) == 1);
  CHECK(EVP_EncryptUpdate(context_.get(), nullptr, &wrote, raw(about), length(about)) == 1);
  CHECK(EVP_EncryptUpdate(context_.get(), raw(out), &wrote, raw(bytes), length(bytes)) == 1);
  CHECK(wrote == length(bytes));
  CHECK(EVP_EncryptFinal_ex(context_.get(), raw(out) + wrote, &wrote) == 1);
  SealTag tag{};
  CHECK(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_GCM_GET_TAG, static_cast<int>(tag.size()), tag.data()) == 1);
  return tag;
}

bool SealCipher::decrypt(SealNonce nonce, BytesView about, BytesView bytes, const SealTag& tag,
                         std::span<std::byte> out) {
  CHECK(out.size() == bytes.size());
  const Iv iv = iv_of(nonce);
  SealTag wanted = tag;  // the library takes it as if it might write to it
  int wrote = 0;
  CHECK(EVP_DecryptInit_ex(context_.get(), nullptr, nullptr, nullptr, iv.data()) == 1);
  CHECK(EVP_DecryptUpdate(context_.get(), nullptr, &wrote, raw(about), length(about)) == 1);
  CHECK(EVP_DecryptUpdate(context_.get(), raw(out), &wrote, raw(bytes), length(bytes)) == 1);
  CHECK(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_GCM_SET_TAG, static_cast<int>(tag.size()), wanted.data()) == 1);
  if (EVP_DecryptFinal_ex(context_.get(), raw(out) + wrote, &wrote) == 1) return true;
  std::fill(out.begin(), out.end(), std::byte{0});  // nobody shall use what nobody vouches for
  return false;
}

}  // namespace holdfast::store
