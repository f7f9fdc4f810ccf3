#include "world/hmac.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/check.h"

namespace holdfast::world {
namespace {

EVP_MAC* algorithm() {
  static EVP_MAC* const fetched = EVP_MAC_fetch(nullptr, "HMAC", nullptr);  // fetching costs microseconds: once
  CHECK(fetched != nullptr);
  return fetched;
}

const unsigned char* raw(BytesView bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }

}  // namespace

void Hmac::Free::operator()(evp_mac_ctx_st* context) const { EVP_MAC_CTX_free(context); }

Hmac::Hmac(BytesView key) : context_(EVP_MAC_CTX_new(algorithm())) {
  CHECK(context_ != nullptr);
  char digest[] = "SHA256";
  const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                               OSSL_PARAM_construct_end()};
  static const unsigned char nothing = 0;  // OpenSSL takes a null key for "keep the old one"
  CHECK(EVP_MAC_init(context_.get(), key.empty() ? &nothing : raw(key), key.size(), params) == 1);
}

Mac Hmac::of(std::initializer_list<BytesView> parts) {
  CHECK(EVP_MAC_init(context_.get(), nullptr, 0, nullptr) == 1);
  for (const BytesView part : parts) {
    CHECK(EVP_MAC_update(context_.get(), raw(part), part.size()) == 1);
  }
  Mac mac{};
  std::size_t size = 0;
  CHECK(EVP_MAC_final(context_.get(), reinterpret_cast<unsigned char*>(mac.data()), &size, mac.size()) == 1);
  CHECK(size == mac.size());
  return mac;
}

bool same_secret(BytesView one, BytesView other) {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace holdfast::world
