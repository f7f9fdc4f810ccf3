// One TCP connection of ours: handshake, then messages, then a clean end.
#pragma once

#include <array>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "world/frame.h"
#include "world/net.h"
#include "world/strangers.h"

namespace holdfast::world {

/// Shared, because an asio handler in flight needs it longer than the Connection that shows it to the user.
class Session : public std::enable_shared_from_this<Session> {
 public:
  using Started = std::function<void(Result<std::unique_ptr<Connection>>)>;

  Session(asio::ip::tcp::socket socket, std::string peer_host, std::shared_ptr<Strangers> strangers);
  asio::ip::tcp::socket& socket() { return socket_; }
  /// Proves and demands the secret within `patience`; then `started` once, on the loop. `secret` is not kept.
  void handshake(Role role, const std::string& secret, const Nonce& nonce, Nanos patience, Started started);
  /// Ends an unfinished handshake: `started` will not run.
  void abandon();

  void send(BytesView message);
  void on_message(std::function<void(BytesView)> fn);
  void on_close(std::function<void(const std::string&)> fn);
  void close();

 private:
  enum class Phase : std::uint8_t { Handshake, Open, Draining, Closed };
  using OnMessage = std::shared_ptr<const std::function<void(BytesView)>>;

  void read();
  void on_read(const asio::error_code& failure, std::size_t bytes);
  void advance_handshake(BytesView in);
  void refuse(const Error& why);
  void end_handshake(const Error& why);
  void opened(BytesView rest);
  void deliver();
  void flush();
  void on_written(const asio::error_code& failure);
  void fail(const std::string& why);
  void report_closed();
  void end_sending();
  void shut();

  asio::ip::tcp::socket socket_;
  asio::steady_timer timer_;  // of the handshake, later of the draining
  std::string peer_host_;
  std::shared_ptr<Strangers> strangers_;
  Phase phase_ = Phase::Handshake;
  Role role_ = Role::Listener;
  std::optional<Handshake> handshake_;
  Started started_;
  std::optional<FrameReader> reader_;
  std::optional<FrameWriter> writer_;
  std::array<std::byte, std::size_t{64} << 10> in_;
  Bytes queued_;
  Bytes in_flight_;
  OnMessage on_message_;  // shared, so that it may be replaced while it runs
  std::function<void(const std::string&)> on_close_;
  bool waiting_for_on_message_ = false;
  std::optional<std::string> closed_why_;  // until on_close has been told
};

}  // namespace holdfast::world
