// The hashes of a tensor in a tensorizer file, over its header and its data.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "store/tensorizer_header.h"

namespace holdfast::store {

class TensorizerHashes {
 public:
  /// Computes those that `wanted`, which outlives this, asks for.
  explicit TensorizerHashes(std::span<const TensorizerHash> wanted);
  ~TensorizerHashes();
  TensorizerHashes(const TensorizerHashes&) = delete;
  TensorizerHashes& operator=(const TensorizerHashes&) = delete;

  void add(BytesView bytes);
  /// Whether all are as wanted. Ends the computation.
  bool match();

 private:
  struct Sha256;
  std::span<const TensorizerHash> wanted_;
  std::uint32_t crc_ = 0;
  std::unique_ptr<Sha256> sha_;  ///< none where no such hash is wanted
};

}  // namespace holdfast::store
