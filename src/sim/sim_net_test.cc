// Connections between simulated processes, and what the network may do to them.
#include "sim/sim_net.h"

#include <gtest/gtest.h>

#include <csignal>
#include <optional>

#include "sim/sim_world.h"

namespace holdfast::sim {
namespace {

/// Two machines with one process each, and one connection between them.
class SimNetTest : public testing::Test {
 protected:
  explicit SimNetTest(std::uint64_t seed = 1)
      : cluster_(seed), server_(cluster_.main("a")), client_(cluster_.main("b")) {}

  void listen(const std::string& secret = "s") {
    auto listener = server_.net().listen({"0.0.0.0", 0}, secret, [this](std::unique_ptr<Connection> peer) {
      peer_ = std::move(peer);
      peer_->on_message([this](BytesView bytes) { got_ += as_text(bytes); });
      peer_->on_close([this](const std::string& why) { peer_closed_ = why; });
    });
    ASSERT_TRUE(listener) << listener.error().message();
    listener_ = *std::move(listener);
  }

  Address address() { return {server_.node().host(), listener_->address().port}; }

  void dial(const std::string& secret = "s", Nanos patience = 1s) {
    answered_.reset();
    client_.net().connect(address(), secret, patience, [this](Result<std::unique_ptr<Connection>> result) {
      answered_ = result ? "ok" : code_name(result.error().code());
      if (!result) return;
      connection_ = *std::move(result);
      connection_->on_message([this](BytesView bytes) { returned_ += as_text(bytes); });
      connection_->on_close([this](const std::string& why) { closed_ = why; });
    });
  }

  void connect() {
    listen();
    dial();
    cluster_.run_for(100ms);
    ASSERT_EQ(answered_, "ok");
    ASSERT_NE(peer_, nullptr);
  }

  void send(const std::string& text) {
    for (const char& c : text) connection_->send(as_bytes(std::string_view(&c, 1)));
  }

  Cluster cluster_;
  SimWorld& server_;
  SimWorld& client_;
  std::unique_ptr<world::Listener> listener_;
  std::unique_ptr<Connection> connection_, peer_;
  std::optional<std::string> answered_, closed_, peer_closed_;
  std::string got_, returned_;
};

TEST_F(SimNetTest, MessagesArriveInOrderBothWays) {
  connect();
  send("abcdefghij");
  peer_->send(as_bytes("back"));
  cluster_.run_for(1s);
  EXPECT_EQ(got_, "abcdefghij");
  EXPECT_EQ(returned_, "back");
}

TEST_F(SimNetTest, AWrongSecretIsDenied) {
  listen("right");
  dial("wrong");
  cluster_.run_for(1s);
  EXPECT_EQ(answered_, "denied");
  EXPECT_EQ(peer_, nullptr);
}

TEST_F(SimNetTest, NobodyListeningIsRefusedAtOnce) {
  listen();
  const Address gone = address();
  listener_.reset();
  std::optional<Code> code;
  client_.net().connect(gone, "s", 10s, [&](auto result) { code = result.error().code(); });
  cluster_.run_for(100ms);
  EXPECT_EQ(code, Code::Unavailable);
}

TEST_F(SimNetTest, AStoppedListenerIsGivenUpInTime) {
  listen();
  server_.signal(SIGSTOP);
  dial("s", 1s);
  cluster_.run_for(900ms);
  EXPECT_FALSE(answered_);
  cluster_.run_for(200ms);
  EXPECT_EQ(answered_, "unavailable");
  server_.signal(SIGCONT);
  cluster_.run_for(1s);
  EXPECT_EQ(peer_, nullptr) << "the caller has given up";
}

TEST_F(SimNetTest, AConnectionAcrossAPartitionIsGivenUpInTime) {
  listen();
  cluster_.partition("a", "b");
  dial("s", 1s);
  cluster_.run_for(2s);
  EXPECT_EQ(answered_, "unavailable");
}

TEST_F(SimNetTest, OnlyNumericHostsAreTaken) {
  const auto refused = server_.net().listen({"localhost", 0}, "s", [](auto) {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::BadInput);
  std::optional<Code> code;
  client_.net().connect({"localhost", 1}, "s", 1s, [&](auto result) { code = result.error().code(); });
  cluster_.run_for(2s);
  EXPECT_EQ(code, Code::BadInput);
}

TEST_F(SimNetTest, APortIsTakenOnceAMachine) {
  listen();
  const Address same{"127.0.0.1", listener_->address().port};
  EXPECT_FALSE(server_.net().listen(same, "s", [](auto) {}));
  EXPECT_TRUE(client_.net().listen(same, "s", [](auto) {}));
}

TEST_F(SimNetTest, LoopbackStaysOnItsMachine) {
  auto listener = *server_.net().listen({"127.0.0.1", 0}, "s", [](auto) {});
  std::optional<bool> from_there, from_here;
  client_.net().connect({"127.0.0.1", listener->address().port}, "s", 1s,
                        [&](auto result) { from_there = bool(result); });
  server_.net().connect({"127.0.0.1", listener->address().port}, "s", 1s,
                        [&](auto result) { from_here = bool(result); });
  cluster_.run_for(2s);
  EXPECT_EQ(from_there, false);
  EXPECT_EQ(from_here, true);
}

TEST_F(SimNetTest, CloseDeliversWhatWasSentAndTellsThePeerOnly) {
  connect();
  send("abc");
  connection_->close();
  connection_->send(as_bytes("late"));
  cluster_.run_for(1s);
  EXPECT_EQ(got_, "abc");
  EXPECT_TRUE(peer_closed_);
  EXPECT_FALSE(closed_);
}

TEST_F(SimNetTest, ADestroyedConnectionMakesNoCalls) {
  connect();
  peer_->send(as_bytes("late"));
  connection_.reset();
  cluster_.run_for(1s);
  EXPECT_EQ(returned_, "");
  EXPECT_FALSE(closed_);
  EXPECT_TRUE(peer_closed_);
}

TEST_F(SimNetTest, AConnectionMayBeDestroyedInItsOwnCallback) {
  connect();
  connection_->on_message([this, kept = std::string(100, 'x')](BytesView) {
    connection_.reset();
    returned_ = kept;
  });
  peer_->send(as_bytes("a"));
  peer_->send(as_bytes("b"));
  cluster_.run_for(1s);
  EXPECT_EQ(returned_.size(), 100U);
}

TEST_F(SimNetTest, WhatComesBeforeTheCallbackWaitsForIt) {
  std::unique_ptr<Connection> quiet;
  listener_ = *server_.net().listen({"0.0.0.0", 0}, "s", [&](auto peer) { quiet = std::move(peer); });
  dial();
  cluster_.run_for(100ms);
  send("abc");
  connection_->close();
  cluster_.run_for(1s);
  quiet->on_close([this](const std::string& why) { peer_closed_ = why; });
  cluster_.run_for(1s);
  EXPECT_FALSE(peer_closed_) << "unread messages come first";
  quiet->on_message([this](BytesView bytes) { got_ += as_text(bytes); });
  cluster_.run_for(1s);
  EXPECT_EQ(got_, "abc");
  EXPECT_TRUE(peer_closed_);
}

TEST_F(SimNetTest, MessagesWaitOutAPartition) {
  connect();
  cluster_.partition("a", "b");
  send("abc");
  cluster_.run_for(1s);
  EXPECT_EQ(got_, "");
  cluster_.heal("a", "b");
  cluster_.run_for(1s);
  EXPECT_EQ(got_, "abc");
  EXPECT_FALSE(closed_);
}

TEST_F(SimNetTest, ALongPartitionBreaksTheConnectionOnBothSides) {
  connect();
  cluster_.policy.net.silence = 5s;
  cluster_.partition("a", "b");
  cluster_.run_for(6s);
  EXPECT_TRUE(closed_);
  EXPECT_TRUE(peer_closed_);
}

TEST_F(SimNetTest, AHealedPartitionBreaksNothingLater) {
  connect();
  cluster_.policy.net.silence = 5s;
  cluster_.partition("a", "b");
  cluster_.run_for(3s);
  cluster_.heal_all();
  cluster_.run_for(10s);
  EXPECT_FALSE(closed_);
}

TEST_F(SimNetTest, AnIsolatedProcessHearsNothingUntilItRejoins) {
  connect();
  server_.isolate();
  send("abc");
  cluster_.run_for(1s);
  EXPECT_EQ(got_, "");
  server_.rejoin();
  cluster_.run_for(1s);
  EXPECT_EQ(got_, "abc");
}

TEST_F(SimNetTest, MessagesToAStoppedProcessWait) {
  connect();
  server_.signal(SIGSTOP);
  send("abc");
  cluster_.run_for(1s);
  EXPECT_EQ(got_, "");
  server_.signal(SIGCONT);
  cluster_.run_for(1s);
  EXPECT_EQ(got_, "abc");
}

TEST_F(SimNetTest, TheDeathOfAProcessClosesItsConnections) {
  connect();
  client_.signal(SIGKILL);
  cluster_.run_for(1s);
  EXPECT_TRUE(peer_closed_);
  EXPECT_FALSE(closed_);
}

TEST_F(SimNetTest, AMachineThatCrashesIsJustSilent) {
  connect();
  cluster_.policy.net.silence = 5s;
  client_.crash();
  cluster_.run_for(4s);
  EXPECT_FALSE(peer_closed_);
  cluster_.run_for(2s);
  EXPECT_TRUE(peer_closed_);
}

TEST_F(SimNetTest, APeerThatDoesNotReadCountsAsGoneOnceTheQueueIsFull) {
  connect();
  server_.signal(SIGSTOP);
  const Bytes big(world::kMessageBytesMax);
  for (int i = 0; i < 17; ++i) connection_->send(big);
  cluster_.run_for(1s);
  EXPECT_TRUE(closed_);
}

TEST_F(SimNetTest, TheLastMessagesOfAKilledProcessMayBeLostButNoneBeforeThem) {
  bool all = false;
  bool some = false;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Cluster cluster(seed);
    std::string got;
    std::unique_ptr<Connection> peer, connection;
    auto listener = *cluster.main("a").net().listen({"0.0.0.0", 1}, "s", [&](auto accepted) {
      peer = std::move(accepted);
      peer->on_message([&](BytesView bytes) { got += as_text(bytes); });
    });
    cluster.main("b").net().connect({cluster.node("a").host(), 1}, "s", 1s, [&](auto result) {
      connection = *std::move(result);
      for (const char* text : {"a", "b", "c", "d"}) connection->send(as_bytes(text));
      cluster.main("b").signal(SIGKILL);
    });
    cluster.run_for(1s);
    EXPECT_EQ(std::string("abcd").substr(0, got.size()), got);
    all = all || got == "abcd";
    some = some || got.size() < 4;
  }
  EXPECT_TRUE(all);
  EXPECT_TRUE(some);
}

TEST_F(SimNetTest, DuplicatesAndOvertakesWhereToldTo) {
  connect();
  cluster_.policy.net.duplicate = 0.3;
  cluster_.policy.net.reorder = 0.3;
  std::string sent;
  for (int i = 0; i < 50; ++i) sent += static_cast<char>('0' + i);
  send(sent);
  cluster_.run_for(1s);
  EXPECT_GT(got_.size(), sent.size());
  std::string order;
  for (const char c : got_) {
    if (order.find(c) == std::string::npos) order += c;
  }
  EXPECT_NE(order, sent);
  EXPECT_EQ(order.size(), sent.size()) << "none is lost";
}

TEST_F(SimNetTest, ACutBreaksTheConnectionForBoth) {
  connect();
  cluster_.policy.net.cut = 1;
  send("a");
  cluster_.run_for(1s);
  EXPECT_TRUE(closed_);
  EXPECT_TRUE(peer_closed_);
}

TEST_F(SimNetTest, TheDelayOfAPairIsItsOwn) {
  connect();
  cluster_.network().set_delay(cluster_.node("a"), cluster_.node("b"), {2s, 2s});
  send("a");
  cluster_.run_for(1s);
  EXPECT_EQ(got_, "");
  cluster_.run_for(2s);
  EXPECT_EQ(got_, "a");
}

}  // namespace
}  // namespace holdfast::sim
