#include "world/real_net.h"

#include <gtest/gtest.h>

#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <deque>

#include "world/frame.h"
#include "world/real_fixture.h"

namespace holdfast::world {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class CountingRandom final : public Random {
 public:
  std::uint64_t next() override { return ++last_; }

 private:
  std::uint64_t last_ = 0;
};

/// A listener, and a peer that has connected to it.
class RealNetTest : public testing::Test {
 protected:
  std::unique_ptr<Listener> listen(const std::string& secret = "secret") {
    auto listener = net_.listen({"127.0.0.1", 0}, secret, [this](auto peer) { accepted_ = std::move(peer); });
    EXPECT_TRUE(listener) << listener.error().message();
    return *std::move(listener);
  }
  /// The outcome of connecting.
  Result<std::unique_ptr<Connection>> connect(const Address& to, const std::string& secret = "secret",
                                              Nanos patience = seconds(30)) {
    std::optional<Result<std::unique_ptr<Connection>>> outcome;
    net_.connect(to, secret, patience, [&](auto made) { outcome = std::move(made); });
    EXPECT_TRUE(serve_until(loop_, [&] { return outcome.has_value(); }));
    return *std::move(outcome);
  }
  /// Makes `accepted_` and `connected_` a pair.
  void make_pair() {
    listener_ = listen();
    auto connected = connect(listener_->address());
    ASSERT_TRUE(connected) << connected.error().message();
    connected_ = *std::move(connected);
    ASSERT_TRUE(serve_until(loop_, [&] { return accepted_ != nullptr; }));
  }
  bool serve(const std::function<bool()>& met) { return serve_until(loop_, met); }

  RealLoop loop_;
  CountingRandom random_;
  RealNet net_{loop_, random_, {.handshake_patience = seconds(60), .handshakes_max = 4}};
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Connection> accepted_;
  std::unique_ptr<Connection> connected_;
};

TEST_F(RealNetTest, CarriesMessagesBothWaysWholeAndInOrder) {
  make_pair();
  std::vector<std::string> up;
  std::vector<std::string> down;
  accepted_->on_message([&](BytesView message) { up.emplace_back(as_text(message)); });
  connected_->on_message([&](BytesView message) { down.emplace_back(as_text(message)); });
  std::vector<std::string> sent;
  for (int i = 0; i < 200; ++i) sent.push_back(std::string(static_cast<std::size_t>(i) * 50, 'x') + std::to_string(i));
  for (const auto& text : sent) connected_->send(as_bytes(text)), accepted_->send(as_bytes(text));
  ASSERT_TRUE(serve([&] { return up.size() == sent.size() && down.size() == sent.size(); }));
  EXPECT_EQ(up, sent);
  EXPECT_EQ(down, sent);
}

TEST_F(RealNetTest, CarriesTheLargestMessage) {
  make_pair();
  std::size_t seen = 0;
  accepted_->on_message([&](BytesView message) { seen = message.size(); });
  connected_->send(Bytes(kMessageBytesMax));
  EXPECT_TRUE(serve([&] { return seen == kMessageBytesMax; }));
}

TEST_F(RealNetTest, KeepsMessagesUntilSomebodyWantsThem) {
  make_pair();
  connected_->send(as_bytes("early"));
  serve_for(loop_, milliseconds(20));
  std::string seen;
  accepted_->on_message([&](BytesView message) { seen = as_text(message); });
  EXPECT_TRUE(serve([&] { return seen == "early"; }));
}

TEST_F(RealNetTest, TellsOnceThatThePeerHungUpAndOnlyAfterItsLastMessage) {
  make_pair();
  std::string log;
  accepted_->on_message([&](BytesView message) { log += as_text(message); });
  accepted_->on_close([&](const std::string&) { log += ".closed"; });
  connected_->send(as_bytes("last"));
  connected_.reset();
  ASSERT_TRUE(serve([&] { return log.ends_with("closed"); }));
  serve_for(loop_, milliseconds(20));
  EXPECT_EQ(log, "last.closed");
}

TEST_F(RealNetTest, TellsOfAnEarlierCloseWhoeverAsksLater) {
  make_pair();
  accepted_->on_message([](BytesView) {});
  connected_.reset();
  serve_for(loop_, milliseconds(20));
  std::string why;
  accepted_->on_close([&](const std::string& reason) { why = reason; });
  EXPECT_TRUE(serve([&] { return !why.empty(); }));
}

TEST_F(RealNetTest, DeliversAllThatWasSentBeforeACloseThoughThePeerWasTalkingToo) {
  make_pair();
  std::size_t bytes = 0;
  bool closed = false;
  accepted_->on_message([&](BytesView message) { bytes += message.size(); });
  accepted_->on_close([&](const std::string&) { closed = true; });
  for (int i = 0; i < 20; ++i) {
    accepted_->send(Bytes(1000));  // never read by the closing side
    connected_->send(Bytes(200'000));
  }
  connected_->close();
  ASSERT_TRUE(serve([&] { return closed; }));
  EXPECT_EQ(bytes, 20u * 200'000u);
}

TEST_F(RealNetTest, CallsNothingAfterTheConnectionIsDestroyedFromItsOwnCallback) {
  make_pair();
  int calls = 0;
  accepted_->on_close([&](const std::string&) { ++calls; });
  accepted_->on_message([&](BytesView) { ++calls, accepted_.reset(); });
  connected_->send(as_bytes("one"));
  connected_->send(as_bytes("two"));
  ASSERT_TRUE(serve([&] { return calls > 0; }));
  serve_for(loop_, milliseconds(20));
  EXPECT_EQ(calls, 1);
}

TEST_F(RealNetTest, CountsAPeerThatTakesNoDataAsGone) {
  make_pair();
  std::string why;
  connected_->on_message([](BytesView) {});
  connected_->on_close([&](const std::string& reason) { why = reason; });
  for (int i = 0; i < 40; ++i) connected_->send(Bytes(kMessageBytesMax));  // the other side has no receiver
  EXPECT_TRUE(serve([&] { return !why.empty(); }));
  EXPECT_NE(why.find("queue full"), std::string::npos) << why;
}

TEST_F(RealNetTest, DeniesAPeerWithAnotherSecretOnBothSides) {
  const auto listener = listen("ours");
  testing::internal::CaptureStderr();
  const auto connection = connect(listener->address(), "theirs");
  const std::string log = testing::internal::GetCapturedStderr();
  ASSERT_FALSE(connection);
  EXPECT_EQ(connection.error().code(), Code::Denied);
  EXPECT_EQ(accepted_, nullptr);
  EXPECT_NE(log.find("does not know the run's secret"), std::string::npos) << log;
}

TEST_F(RealNetTest, SaysUnavailableWhereNobodyListens) {
  const Address address = listen()->address();
  const auto connection = connect(address);
  ASSERT_FALSE(connection);
  EXPECT_EQ(connection.error().code(), Code::Unavailable);
  EXPECT_NE(connection.error().message().find(address.text()), std::string::npos);
}

TEST_F(RealNetTest, GivesUpInTimeOnAListenerThatSaysNothing) {
  asio::ip::tcp::acceptor silent(loop_.context(), {asio::ip::address_v4::loopback(), 0});
  const auto connection = connect({"127.0.0.1", silent.local_endpoint().port()}, "secret", milliseconds(50));
  ASSERT_FALSE(connection);
  EXPECT_EQ(connection.error().code(), Code::Unavailable);
}

TEST_F(RealNetTest, RefusesHostsThatAreNotNumeric) {
  const auto listener = net_.listen({"localhost", 0}, "secret", [](auto) {});
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code(), Code::BadInput);
  const auto connection = connect({"localhost", 1});
  ASSERT_FALSE(connection);
  EXPECT_EQ(connection.error().code(), Code::BadInput);
}

TEST_F(RealNetTest, Behaviour15TwoListenersAskForAnyPortAndGetOneEach) {
  const auto one = listen();
  const auto other = listen();
  EXPECT_NE(one->address().port, 0);
  EXPECT_NE(one->address().port, other->address().port);
  const auto taken = net_.listen(one->address(), "secret", [](auto) {});
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code(), Code::Unavailable);
}

TEST_F(RealNetTest, ListensOnIpVersion6Too) {
  const auto listener = net_.listen({"::1", 0}, "secret", [this](auto peer) { accepted_ = std::move(peer); });
  ASSERT_TRUE(listener) << listener.error().message();
  EXPECT_TRUE(connect((*listener)->address()));
}

TEST_F(RealNetTest, StopsListeningWithItsListener) {
  auto listener = listen();
  const Address address = listener->address();
  std::optional<bool> connected;
  net_.connect(address, "secret", seconds(30), [&](auto made) { connected = static_cast<bool>(made); });
  listener.reset();
  ASSERT_TRUE(serve([&] { return connected.has_value(); }));
  EXPECT_FALSE(*connected);
  EXPECT_EQ(accepted_, nullptr);
}

/// A raw socket that talks to a listener of ours, and what it got back before it was hung up on.
class Stranger {
 public:
  Stranger(RealLoop& loop, const Address& to) : socket_(loop.context()) {
    socket_.connect({asio::ip::make_address(to.host), to.port});
    read();
  }
  void say(BytesView bytes) {
    asio::error_code ignored;
    asio::write(socket_, asio::buffer(bytes.data(), bytes.size()), ignored);
  }
  bool hung_up_on() const { return hung_up_on_; }

 private:
  void read() {
    socket_.async_read_some(asio::buffer(buffer_), [this](const asio::error_code& failure, std::size_t) {
      if (failure == asio::error::operation_aborted) return;
      failure ? void(hung_up_on_ = true) : read();
    });
  }
  asio::ip::tcp::socket socket_;
  std::array<std::byte, 256> buffer_{};
  bool hung_up_on_ = false;
};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST_F(RealNetTest, HangsUpOnStrangersAndLogsTheirHostOnce) {
  const auto listener = listen();
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) {
    Stranger stranger(loop_, listener->address());
    stranger.say(as_bytes("GET / HTTP/1.1\r\n\r\n"));
    ASSERT_TRUE(serve([&] { return stranger.hung_up_on(); }));
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(count(log, "refused a connection with 127.0.0.1"), 1u) << log;
  EXPECT_TRUE(connect(listener->address())) << "others are served on";
}

TEST_F(RealNetTest, ClosesAConnectionOverADamagedMessageAndLogsIt) {
  const auto listener = listen();
  testing::internal::CaptureStderr();
  asio::ip::tcp::socket peer(loop_.context());
  peer.connect({asio::ip::address_v4::loopback(), listener->address().port});
  Handshake handshake(Role::Connector, "secret", Nonce{});
  Bytes out = handshake.opening();
  const auto read_on = [&](std::size_t bytes) {
    Bytes in(bytes);
    loop_.background([&] { asio::read(peer, asio::buffer(in)); }, [&] { loop_.stop(); });
    loop_.run();
    BytesView rest(in);
    out = *handshake.feed(rest);
  };
  asio::write(peer, asio::buffer(out));
  read_on(kHelloBytes);
  asio::write(peer, asio::buffer(out));
  read_on(sizeof(Mac));
  ASSERT_TRUE(serve([&] { return accepted_ != nullptr; }));
  std::string seen;
  std::string why;
  accepted_->on_message([&](BytesView message) { seen += as_text(message); });
  accepted_->on_close([&](const std::string& reason) { why = reason; });
  FrameWriter writer(handshake.keys().send);
  Bytes wire;
  writer.append(wire, as_bytes("good"));
  writer.append(wire, as_bytes("bad"));
  wire.back() ^= std::byte{1};
  asio::write(peer, asio::buffer(wire));
  ASSERT_TRUE(serve([&] { return !why.empty(); }));
  EXPECT_EQ(seen, "good");
  EXPECT_NE(why.find("damaged"), std::string::npos) << why;
  EXPECT_EQ(count(testing::internal::GetCapturedStderr(), "damaged"), 1u);
}

TEST_F(RealNetTest, HangsUpOnAStrangerThatSaysNothing) {
  RealNet hasty(loop_, random_, {.handshake_patience = milliseconds(50)});
  const auto listener = hasty.listen({"127.0.0.1", 0}, "secret", [](auto) {});
  ASSERT_TRUE(listener);
  Stranger stranger(loop_, (*listener)->address());
  EXPECT_TRUE(serve([&] { return stranger.hung_up_on(); }));
}

TEST_F(RealNetTest, HoldsAFewHandshakesAtOnceAndRefusesMore) {
  const auto listener = listen();
  std::deque<Stranger> strangers;
  for (int i = 0; i < 5; ++i) strangers.emplace_back(loop_, listener->address());
  ASSERT_TRUE(serve([&] { return strangers[4].hung_up_on(); }));
  EXPECT_FALSE(strangers[3].hung_up_on());
  strangers.clear();
  serve_for(loop_, milliseconds(1));
  EXPECT_TRUE(connect(listener->address())) << "once they are gone there is room again";
}

}  // namespace
}  // namespace holdfast::world
