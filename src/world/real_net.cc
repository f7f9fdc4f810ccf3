#include "world/real_net.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <cerrno>
#include <cstring>
#include <set>

#include "world/os_error.h"
#include "world/session.h"
#include "world/strangers.h"

namespace holdfast::world {
namespace {

using asio::ip::tcp;

constexpr std::chrono::milliseconds kAcceptPause{50};

Nonce make_nonce(Random& random) {
  Nonce nonce{};
  for (std::size_t i = 0; i < nonce.size(); i += sizeof(std::uint64_t)) {
    const std::uint64_t bits = random.next();
    std::memcpy(&nonce[i], &bits, sizeof bits);
  }
  return nonce;
}

Result<tcp::endpoint> endpoint_of(const Address& address) {
  asio::error_code failure;
  const auto host = asio::ip::make_address(address.host, failure);
  if (failure) return Error(Code::BadInput, "\"" + address.host + "\" is not a numeric IPv4 or IPv6 address");
  return tcp::endpoint(host, address.port);
}

/// asio's own sockets would be inherited by children.
template <typename Socket>
int open_socket(Socket& socket, const tcp::endpoint& endpoint) {
  const auto protocol = endpoint.protocol();
  const int fd = ::socket(protocol.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
  if (fd < 0) return errno;
  asio::error_code failure;
  socket.assign(protocol, fd, failure);
  return failure.value();
}

void tune(tcp::socket& socket) {
  ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
  asio::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
}

class Acceptor : public std::enable_shared_from_this<Acceptor> {
 public:
  using OnPeer = std::function<void(std::unique_ptr<Connection>)>;

  Acceptor(RealLoop& loop, Random& random, const NetPolicy& policy, std::shared_ptr<Strangers> strangers,
           std::string secret, OnPeer on_peer)
      : random_(random),
        policy_(policy),
        acceptor_(loop.context()),
        pause_(loop.context()),
        strangers_(std::move(strangers)),
        secret_(std::move(secret)),
        on_peer_(std::move(on_peer)) {}

  Status open(const Address& at) {
    auto endpoint = endpoint_of(at);
    if (!endpoint) return std::move(endpoint).error().in("listen");
    if (const int failed = open_socket(acceptor_, *endpoint)) return os_error(failed, "listen on " + at.text());
    asio::error_code failure;
    acceptor_.set_option(tcp::acceptor::reuse_address(true), failure);
    acceptor_.bind(*endpoint, failure);
    if (!failure) acceptor_.listen(tcp::acceptor::max_listen_connections, failure);
    if (failure) return os_error(failure.value(), "listen on " + at.text());
    const auto bound = acceptor_.local_endpoint(failure);
    address_ = {bound.address().to_string(), bound.port()};
    return Ok{};
  }

  Address address() const { return address_; }

  void accept() {
    acceptor_.async_accept([self = shared_from_this()](const asio::error_code& failure, tcp::socket socket) {
      if (!self->acceptor_.is_open()) return;
      if (failure) return self->accept_later();  // out of descriptors, mostly: trying at once would spin
      self->greet(std::move(socket));
      self->accept();
    });
  }

  void stop() {
    asio::error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
    on_peer_ = nullptr;
    for (const auto& session : std::exchange(greeting_, {})) session->abandon();
  }

 private:
  void accept_later() {
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([self = shared_from_this()](const asio::error_code& cancelled) {
      if (!cancelled) self->accept();
    });
  }

  void greet(tcp::socket socket) {
    asio::error_code failure;
    const auto peer = socket.remote_endpoint(failure);
    if (failure) return;
    const std::string host = peer.address().to_string();
    if (greeting_.size() >= policy_.handshakes_max)
      return strangers_->refused(host, "too many connections without handshake");
    tune(socket);
    auto session = std::make_shared<Session>(std::move(socket), host, strangers_);
    greeting_.insert(session);
    session->handshake(Role::Listener, secret_, make_nonce(random_), policy_.handshake_patience,
                       [weak = weak_from_this(), key = std::weak_ptr(session)](auto connection) {
                         const auto self = weak.lock();
                         if (self == nullptr) return;
                         self->greeting_.erase(key.lock());
                         const auto receiver = self->on_peer_;  // a copy: it may stop this listener
                         if (connection && receiver) receiver(*std::move(connection));
                       });
  }

  Random& random_;
  NetPolicy policy_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::shared_ptr<Strangers> strangers_;
  std::string secret_;
  OnPeer on_peer_;
  Address address_;
  std::set<std::shared_ptr<Session>> greeting_;
};

class RealListener final : public Listener {
 public:
  explicit RealListener(std::shared_ptr<Acceptor> acceptor) : acceptor_(std::move(acceptor)) {}
  ~RealListener() override { acceptor_->stop(); }
  Address address() const override { return acceptor_->address(); }

 private:
  std::shared_ptr<Acceptor> acceptor_;  // shared with the asio handler that waits for the next peer
};

}  // namespace

RealNet::RealNet(RealLoop& loop, Random& random, const NetPolicy& policy)
    : loop_(loop), random_(random), policy_(policy), strangers_(std::make_shared<Strangers>()) {}

RealNet::~RealNet() = default;

Result<std::unique_ptr<Listener>> RealNet::listen(const Address& at, const std::string& secret,
                                                  std::function<void(std::unique_ptr<Connection>)> on_peer) {
  auto acceptor = std::make_shared<Acceptor>(loop_, random_, policy_, strangers_, secret, std::move(on_peer));
  if (auto opened = acceptor->open(at); !opened) return std::move(opened).error();
  acceptor->accept();
  return std::unique_ptr<Listener>(std::make_unique<RealListener>(std::move(acceptor)));
}

void RealNet::connect(const Address& to, const std::string& secret, Nanos patience,
                      std::function<void(Result<std::unique_ptr<Connection>>)> done) {
  const std::string doing = "connect to " + to.text();
  auto endpoint = endpoint_of(to);
  tcp::socket socket(loop_.context());
  const int failed = endpoint ? open_socket(socket, *endpoint) : 0;
  if (!endpoint || failed != 0) {
    Error error = endpoint ? os_error(failed, doing) : std::move(endpoint).error().in(doing);
    return loop_.post([done = std::move(done), error = std::move(error)] { done(error); });
  }
  tune(socket);
  auto session = std::make_shared<Session>(std::move(socket), to.host, strangers_);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  const TimerId timer = loop_.call_after(patience, [session] {
    asio::error_code ignored;
    session->socket().cancel(ignored);  // the pending connect fails, and says so below
  });
  session->socket().async_connect(
      *endpoint, [this, session, secret, deadline, timer, doing, nonce = make_nonce(random_),
                  done = std::move(done)](const asio::error_code& failure) {
        loop_.cancel(timer);
        if (failure == asio::error::operation_aborted) return done(Error(Code::Unavailable, doing + ": timed out"));
        if (failure) return done(Error(Code::Unavailable, doing + ": " + failure.message()));
        session->handshake(Role::Connector, secret, nonce, deadline - std::chrono::steady_clock::now(), done);
      });
}

}  // namespace holdfast::world
