#include "store/tensorizer_hashes.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "store/crc32.h"

namespace holdfast::store {

struct TensorizerHashes::Sha256 {
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

TensorizerHashes::TensorizerHashes(std::span<const TensorizerHash> wanted) : wanted_(wanted) {
  if (std::none_of(wanted.begin(), wanted.end(), [](const TensorizerHash& hash) { return hash.type == 1; })) return;
  sha_ = std::make_unique<Sha256>();
  CHECK(sha_->context != nullptr && EVP_DigestInit_ex(sha_->context.get(), EVP_sha256(), nullptr) == 1);
}

TensorizerHashes::~TensorizerHashes() = default;

void TensorizerHashes::add(BytesView bytes) {
  crc_ = crc32(bytes, crc_);
  if (sha_) CHECK(EVP_DigestUpdate(sha_->context.get(), bytes.data(), bytes.size()) == 1);
}

bool TensorizerHashes::match() {
  Bytes crc(sizeof crc_);
  std::memcpy(crc.data(), &crc_, sizeof crc_);
  Bytes sha(EVP_MAX_MD_SIZE);
  unsigned size = 0;
  if (sha_) CHECK(EVP_DigestFinal_ex(sha_->context.get(), reinterpret_cast<unsigned char*>(sha.data()), &size) == 1);
  sha.resize(size);
  return std::all_of(wanted_.begin(), wanted_.end(),
                     [&](const TensorizerHash& hash) { return hash.value == (hash.type == 0 ? crc : sha); });
}

}  // namespace holdfast::store
