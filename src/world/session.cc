#include "world/session.h"

#include <asio/buffer.hpp>
#include <asio/post.hpp>
#include <asio/write.hpp>

#include "base/check.h"

namespace holdfast::world {
namespace {

constexpr std::chrono::seconds kDrainPatience{2};

class SessionConnection final : public Connection {
 public:
  explicit SessionConnection(std::shared_ptr<Session> session) : session_(std::move(session)) {}
  ~SessionConnection() override { session_->close(); }
  void send(BytesView message) override { session_->send(message); }
  void on_message(std::function<void(BytesView)> fn) override { session_->on_message(std::move(fn)); }
  void on_close(std::function<void(const std::string&)> fn) override { session_->on_close(std::move(fn)); }
  void close() override { session_->close(); }

 private:
  std::shared_ptr<Session> session_;
};

}  // namespace

Session::Session(asio::ip::tcp::socket socket, std::string peer_host, std::shared_ptr<Strangers> strangers)
    : socket_(std::move(socket)),
      timer_(socket_.get_executor()),
      peer_host_(std::move(peer_host)),
      strangers_(std::move(strangers)) {}

void Session::handshake(Role role, const std::string& secret, const Nonce& nonce, Nanos patience, Started started) {
  started_ = std::move(started);
  role_ = role;
  handshake_.emplace(role, secret, nonce);
  timer_.expires_after(patience);
  timer_.async_wait([self = shared_from_this()](const asio::error_code& cancelled) {
    if (cancelled || self->phase_ != Phase::Handshake) return;
    self->refuse(Error(Code::Unavailable, "no handshake in time"));
  });
  queued_ = handshake_->opening();
  flush();
  read();
}

void Session::abandon() {
  started_ = nullptr;
  shut();
}

void Session::read() {
  socket_.async_read_some(asio::buffer(in_),
                          [self = shared_from_this()](const asio::error_code& failure, std::size_t bytes) {
                            self->on_read(failure, bytes);
                          });
}

void Session::on_read(const asio::error_code& failure, std::size_t bytes) {
  const BytesView in = BytesView(in_).first(bytes);
  switch (phase_) {
    case Phase::Closed: return;
    case Phase::Draining: failure ? shut() : read(); return;
    case Phase::Handshake:
      if (!failure) return advance_handshake(in);
      return end_handshake(handshake_->judged() ? Error(Code::Denied, "the peer refused our secret")
                                                : Error(Code::Unavailable, "the peer hung up"));
    case Phase::Open:
      if (failure) return fail(failure == asio::error::eof ? "the peer hung up" : failure.message());
      reader_->feed(in);
      return deliver();
  }
}

void Session::advance_handshake(BytesView in) {
  auto reply = handshake_->feed(in);
  if (!reply) return refuse(reply.error());
  queued_.insert(queued_.end(), reply->begin(), reply->end());
  flush();
  if (phase_ != Phase::Handshake) return;
  handshake_->done() ? opened(in) : read();
}

void Session::refuse(const Error& why) {
  if (role_ == Role::Listener) strangers_->refused(peer_host_, why.message());  // a connector is told by `started_`
  end_handshake(why);
}

void Session::end_handshake(const Error& why) {
  shut();
  if (const auto started = std::exchange(started_, nullptr)) started(Error(why).in("handshake with " + peer_host_));
}

void Session::opened(BytesView rest) {
  const SessionKeys keys = handshake_->keys();
  handshake_.reset();
  reader_.emplace(keys.receive);
  writer_.emplace(keys.send);
  timer_.cancel();
  phase_ = Phase::Open;
  reader_->feed(rest);
  const auto started = std::exchange(started_, nullptr);
  if (started) started(std::unique_ptr<Connection>(std::make_unique<SessionConnection>(shared_from_this())));
  deliver();
}

void Session::deliver() {
  while (phase_ == Phase::Open) {
    waiting_for_on_message_ = on_message_ == nullptr;
    if (waiting_for_on_message_) return;
    const auto message = reader_->next();
    if (!message) {
      strangers_->refused(peer_host_, message.error().message());
      return fail(message.error().message());
    }
    if (!message->has_value()) break;
    const OnMessage receiver = on_message_;
    (*receiver)(**message);
  }
  if (phase_ == Phase::Open || phase_ == Phase::Draining) read();
}

void Session::send(BytesView message) {
  CHECK(message.size() <= kMessageBytesMax);
  if (phase_ != Phase::Open) return;
  if (queued_.size() + in_flight_.size() + message.size() > kSendQueueBytesMax) {
    // Told from the loop, not from inside `send`, whose caller may be in the middle of something.
    phase_ = Phase::Closed;
    asio::post(socket_.get_executor(), [self = shared_from_this()] { self->fail("it takes no data: queue full"); });
    return;
  }
  writer_->append(queued_, message);
  flush();
}

void Session::flush() {
  if (!in_flight_.empty() || queued_.empty()) return;
  in_flight_.swap(queued_);
  asio::async_write(
      socket_, asio::buffer(in_flight_),
      [self = shared_from_this()](const asio::error_code& failure, std::size_t) { self->on_written(failure); });
}

void Session::on_written(const asio::error_code& failure) {
  in_flight_.clear();
  if (phase_ == Phase::Closed) return;
  if (failure) {
    // The reading side learns of it too, after the last messages that did arrive.
    queued_.clear();
    if (phase_ == Phase::Draining) shut();
    return;
  }
  flush();
  if (phase_ == Phase::Draining && in_flight_.empty()) end_sending();
}

void Session::on_message(std::function<void(BytesView)> fn) {
  on_message_ = std::make_shared<const std::function<void(BytesView)>>(std::move(fn));
  if (!std::exchange(waiting_for_on_message_, false)) return;
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->deliver(); });
}

void Session::on_close(std::function<void(const std::string&)> fn) {
  on_close_ = std::move(fn);
  if (!closed_why_) return;
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->report_closed(); });
}

void Session::fail(const std::string& why) {
  shut();
  closed_why_ = why;
  report_closed();
}

void Session::report_closed() {
  if (!closed_why_ || !on_close_) return;
  const std::string why = *std::exchange(closed_why_, std::nullopt);
  std::exchange(on_close_, nullptr)(why);
  on_message_ = nullptr;
}

void Session::close() {
  on_message_ = nullptr;
  on_close_ = nullptr;
  closed_why_.reset();
  if (phase_ != Phase::Open) return;
  phase_ = Phase::Draining;
  timer_.expires_after(kDrainPatience);
  timer_.async_wait([self = shared_from_this()](const asio::error_code& cancelled) {
    if (!cancelled) self->shut();
  });
  if (in_flight_.empty()) end_sending();
  // Reading goes on until the peer hangs up: closing over unread bytes would reset the connection, and the peer
  // would lose the end of what we sent.
  if (std::exchange(waiting_for_on_message_, false)) read();
}

void Session::end_sending() {
  asio::error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
}

void Session::shut() {
  phase_ = Phase::Closed;
  timer_.cancel();
  asio::error_code ignored;
  socket_.close(ignored);
}

}  // namespace holdfast::world
