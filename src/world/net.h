// Messages between processes: whole, bounded, authenticated by the run's secret. A stranger's or a damaged message
// closes its connection and is logged once per peer. Byte layout: docs/format-wire.md, codec: world/frame.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "world/clock.h"

namespace holdfast::world {

struct Address {
  std::string host;        ///< numeric IPv4 or IPv6
  std::uint16_t port = 0;  ///< 0 asks for any free port
  std::string text() const;
  /// "127.0.0.0/8" or "::1".
  bool loopback() const;
  friend bool operator==(const Address&, const Address&) = default;
};

constexpr std::size_t kMessageBytesMax = std::size_t{1} << 20;
/// Bytes waiting to be sent on one connection; past it the peer counts as gone.
constexpr std::size_t kSendQueueBytesMax = std::size_t{16} << 20;

/// One authenticated peer. Callbacks run on the loop; none runs after the destructor, `close` or `on_close`.
/// Messages arrive whole and in order, or the connection closes. (The simulated net may, where told to, duplicate
/// and reorder them all the same, so receivers judge by epoch and request id.)
class Connection {
 public:
  virtual ~Connection() = default;
  /// Queues; never blocks. Dropped silently once closed. CHECKs size <= kMessageBytesMax.
  virtual void send(BytesView message) = 0;
  virtual void on_message(std::function<void(BytesView)> fn) = 0;
  /// Called once, with why, when the peer goes away or breaks the rules.
  virtual void on_close(std::function<void(const std::string&)> fn) = 0;
  /// Sends what is queued, then closes. `on_close` is not called.
  virtual void close() = 0;
};

class Listener {
 public:
  virtual ~Listener() = default;  ///< stops listening
  virtual Address address() const = 0;
};

class Net {
 public:
  virtual ~Net() = default;
  /// `on_peer` gets each peer that proved it knows `secret` (both sides prove it: mutual HMAC challenge).
  /// Errors: Unavailable (address in use), BadInput (not a numeric host).
  virtual Result<std::unique_ptr<Listener>> listen(const Address& at, const std::string& secret,
                                                   std::function<void(std::unique_ptr<Connection>)> on_peer) = 0;
  /// `done` runs on the loop with the authenticated connection, or with Unavailable / Denied, within `patience`.
  virtual void connect(const Address& to, const std::string& secret, Nanos patience,
                       std::function<void(Result<std::unique_ptr<Connection>>)> done) = 0;
};

}  // namespace holdfast::world
