// The wire format, docs/format-wire.md, as values: bytes in, bytes out, no socket. Safe on any bytes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "world/hmac.h"

namespace holdfast::world {

using Nonce = std::array<std::byte, 32>;

constexpr std::size_t kHelloBytes = 4 + sizeof(Nonce);
constexpr std::size_t kFrameMacBytes = 16;
constexpr std::size_t kFrameHeaderBytes = 4 + kFrameMacBytes;

enum class Role : std::uint8_t { Connector, Listener };

struct SessionKeys {
  Mac send{};
  Mac receive{};
};

/// Both sides prove that they know the secret; the connector first, so that a listener tells a stranger nothing.
class Handshake {
 public:
  Handshake(Role role, const std::string& secret, const Nonce& nonce);
  /// What to send before anything has come: the connector's hello, nothing from a listener.
  Bytes opening() const;
  /// Takes what it needs from the front of `in` and returns what to send now. No longer to be called once done or
  /// failed. Errors: BadInput (no peer of ours), Denied (the peer does not know the secret).
  Result<Bytes> feed(BytesView& in);
  bool done() const { return stage_ == Stage::Done; }
  /// The peer has been sent our proof and has not answered: if it hangs up now, it refused our secret.
  bool judged() const { return stage_ == Stage::Proof && role_ == Role::Connector; }
  /// CHECKs done.
  SessionKeys keys();

 private:
  enum class Stage : std::uint8_t { Hello, Proof, Done };
  Result<Bytes> take_hello();
  Result<Bytes> take_proof();
  Bytes hello() const;
  Mac derive(std::string_view purpose);

  Role role_;
  Hmac secret_;
  Nonce ours_;
  Nonce theirs_{};
  Stage stage_ = Stage::Hello;
  Bytes buffered_;
};

class FrameWriter {
 public:
  explicit FrameWriter(const Mac& key) : key_(key) {}
  /// Appends the frame of `message` to `out`. CHECKs size <= kMessageBytesMax.
  void append(Bytes& out, BytesView message);

 private:
  Hmac key_;
  std::uint64_t sequence_ = 0;
};

/// Never holds more than one whole message and what was fed beyond it.
class FrameReader {
 public:
  explicit FrameReader(const Mac& key) : key_(key) {}
  void feed(BytesView bytes);
  /// The next whole message, valid until the next call of either; nothing while it is incomplete. After an error
  /// (BadInput: too large; Denied: not from the peer, damaged, repeated or left out) there is nothing but errors.
  Result<std::optional<BytesView>> next();

 private:
  Hmac key_;
  std::uint64_t sequence_ = 0;
  Bytes buffer_;
  std::size_t begin_ = 0;  // what lies before it has been taken
  bool broken_ = false;
};

}  // namespace holdfast::world
