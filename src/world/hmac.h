// HMAC-SHA256, keyed once and used many times.
#pragma once

#include <array>
#include <initializer_list>
#include <memory>

#include "base/bytes.h"

struct evp_mac_ctx_st;  // OpenSSL's

namespace holdfast::world {

using Mac = std::array<std::byte, 32>;

class Hmac {
 public:
  explicit Hmac(BytesView key);
  /// Of the parts, one after another.
  Mac of(std::initializer_list<BytesView> parts);

 private:
  struct Free {
    void operator()(evp_mac_ctx_st* context) const;
  };
  std::unique_ptr<evp_mac_ctx_st, Free> context_;
};

/// In a time that does not tell where they differ.
bool same_secret(BytesView one, BytesView other);

}  // namespace holdfast::world
