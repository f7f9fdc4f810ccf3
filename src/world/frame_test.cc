#include "world/frame.h"

#include <gtest/gtest.h>

#include <random>

#include "world/net.h"

namespace holdfast::world {
namespace {

Nonce nonce_of(std::uint8_t byte) {
  Nonce nonce;
  nonce.fill(std::byte{byte});
  return nonce;
}

std::string hex(BytesView bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    constexpr char digits[] = "0123456789abcdef";
    text += digits[std::to_integer<unsigned>(byte) >> 4];
    text += digits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

/// Carries bytes between the two until neither has more to say, `chunk` at a time. The first error ends it.
Status introduce(Handshake& connector, Handshake& listener, std::size_t chunk) {
  Bytes to_listener = connector.opening();
  Bytes to_connector = listener.opening();
  const auto carry = [chunk](Handshake& to, Bytes& pending, Bytes& answers) -> Status {
    const Bytes bytes = std::exchange(pending, {});
    for (std::size_t at = 0; at < bytes.size(); at += chunk) {
      BytesView part = BytesView(bytes).subspan(at, std::min(chunk, bytes.size() - at));
      const Bytes answer = TRY(to.feed(part), "feed");
      EXPECT_TRUE(part.empty());
      answers.insert(answers.end(), answer.begin(), answer.end());
    }
    return Ok{};
  };
  while (!to_listener.empty() || !to_connector.empty()) {
    TRY(carry(listener, to_listener, to_connector), "listener");
    TRY(carry(connector, to_connector, to_listener), "connector");
  }
  return Ok{};
}

struct Pair {
  FrameWriter writer;
  FrameReader reader;
};

Pair make_pair() {
  Handshake connector(Role::Connector, "secret", nonce_of(1));
  Handshake listener(Role::Listener, "secret", nonce_of(2));
  EXPECT_TRUE(introduce(connector, listener, 1000));
  return {FrameWriter(connector.keys().send), FrameReader(listener.keys().receive)};
}

TEST(Handshake, GivesBothSidesTheSameKeysCrossed) {
  for (const std::size_t chunk : {1, 7, 1000}) {
    Handshake connector(Role::Connector, "secret", nonce_of(1));
    Handshake listener(Role::Listener, "secret", nonce_of(2));
    ASSERT_TRUE(introduce(connector, listener, chunk));
    ASSERT_TRUE(connector.done() && listener.done());
    EXPECT_EQ(connector.keys().send, listener.keys().receive);
    EXPECT_EQ(connector.keys().receive, listener.keys().send);
    EXPECT_NE(connector.keys().send, connector.keys().receive);
  }
}

TEST(Handshake, RefusesAPeerWithAnotherSecretBeforeProvingItsOwn) {
  Handshake connector(Role::Connector, "secret", nonce_of(1));
  Handshake listener(Role::Listener, "another", nonce_of(2));
  const Bytes hello = connector.opening();
  BytesView in(hello);
  const auto challenge = listener.feed(in);
  ASSERT_TRUE(challenge);
  EXPECT_EQ(challenge->size(), kHelloBytes);  // a nonce, nothing made from the secret
  in = *challenge;
  EXPECT_FALSE(connector.judged());
  const auto proof = connector.feed(in);
  ASSERT_TRUE(proof);
  EXPECT_TRUE(connector.judged());
  in = *proof;
  const auto verdict = listener.feed(in);
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().code(), Code::Denied);
}

TEST(Handshake, RefusesAListenerThatSendsTheConnectorsProofBack) {
  Handshake connector(Role::Connector, "secret", nonce_of(1));
  const Bytes hello = connector.opening();
  BytesView in(hello);  // even its nonce is the connector's own
  const auto proof = connector.feed(in);
  ASSERT_TRUE(proof);
  in = *proof;
  const auto verdict = connector.feed(in);
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().code(), Code::Denied);
}

TEST(Handshake, RefusesOtherProtocolsByTheirFirstBytes) {
  Handshake listener(Role::Listener, "secret", nonce_of(2));
  BytesView in = as_bytes("GET");
  const auto verdict = listener.feed(in);
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().code(), Code::BadInput);
}

TEST(Handshake, LeavesWhatFollowsItUnread) {
  Handshake connector(Role::Connector, "secret", nonce_of(1));
  Handshake listener(Role::Listener, "secret", nonce_of(2));
  const Bytes hello = connector.opening();
  BytesView in(hello);
  auto challenge = listener.feed(in);
  ASSERT_TRUE(challenge);
  in = *challenge;
  auto proof = connector.feed(in);
  ASSERT_TRUE(proof);
  proof->resize(proof->size() + 5);
  in = *proof;
  ASSERT_TRUE(listener.feed(in));
  EXPECT_TRUE(listener.done());
  EXPECT_EQ(in.size(), 5u);
}

// The bytes of docs/format-wire.md: a change here is a new version of the format.
TEST(Frame, HasTheBytesThatAreDocumented) {
  Handshake connector(Role::Connector, "secret", nonce_of(1));
  Handshake listener(Role::Listener, "secret", nonce_of(2));
  EXPECT_EQ(hex(connector.opening()), "48465731" + hex(nonce_of(1)));
  ASSERT_TRUE(introduce(connector, listener, 1000));
  FrameWriter writer(connector.keys().send);
  Bytes out;
  writer.append(out, as_bytes("hello"));
  writer.append(out, BytesView());
  EXPECT_EQ(hex(out),
            "05000000db4d85ec6ec857968f7eff00a09fe5dd68656c6c6f"
            "00000000ab5a8e352f4eb7320ef40d02e71386d0");
}

TEST(Frame, CarriesMessagesOfAnySizeWhateverTheChunks) {
  for (const std::size_t chunk : {std::size_t{1}, std::size_t{19}, std::size_t{4096}}) {
    auto [writer, reader] = make_pair();
    const std::vector<std::size_t> sizes = {0, 1, 20, 5000, 0};
    Bytes wire;
    for (const std::size_t size : sizes) writer.append(wire, Bytes(size, std::byte{7}));
    std::vector<std::size_t> seen;
    for (std::size_t at = 0; at < wire.size(); at += chunk) {
      reader.feed(BytesView(wire).subspan(at, std::min(chunk, wire.size() - at)));
      for (;;) {
        const auto message = reader.next();
        ASSERT_TRUE(message);
        if (!message->has_value()) break;
        seen.push_back((*message)->size());
      }
    }
    EXPECT_EQ(seen, sizes);
  }
}

TEST(Frame, CarriesTheLargestMessage) {
  auto [writer, reader] = make_pair();
  Bytes wire;
  writer.append(wire, Bytes(kMessageBytesMax));
  reader.feed(wire);
  const auto message = reader.next();
  ASSERT_TRUE(message);
  EXPECT_EQ((*message)->size(), kMessageBytesMax);
}

TEST(Frame, RefusesAMessageWithAnyBitFlipped) {
  Bytes wire;
  make_pair().writer.append(wire, as_bytes("hello"));
  for (std::size_t bit = 0; bit < wire.size() * 8; ++bit) {
    auto reader = make_pair().reader;
    Bytes damaged = wire;
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    damaged.resize(damaged.size() + 300);  // a length that grew waits for more
    reader.feed(damaged);
    const auto message = reader.next();
    EXPECT_FALSE(message && message->has_value()) << "bit " << bit;
  }
}

TEST(Frame, RefusesARepeatedAndALeftOutMessage) {
  auto [writer, reader] = make_pair();
  Bytes first;
  Bytes second;
  writer.append(first, as_bytes("one"));
  writer.append(second, as_bytes("two"));
  FrameReader& repeated = reader;
  repeated.feed(first);
  ASSERT_TRUE(repeated.next());
  repeated.feed(first);
  EXPECT_FALSE(repeated.next());
  repeated.feed(second);
  EXPECT_FALSE(repeated.next()) << "after an error there is nothing but errors";

  FrameReader left_out = make_pair().reader;
  left_out.feed(second);
  EXPECT_FALSE(left_out.next());
}

TEST(Frame, RefusesALengthOverTheLimitAtOnce) {
  auto reader = make_pair().reader;
  ByteWriter header;
  header.put(static_cast<std::uint32_t>(kMessageBytesMax + 1));
  reader.feed(std::move(header).take());
  const auto message = reader.next();
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error().code(), Code::BadInput);
}

TEST(Frame, TakesArbitraryBytesWithoutAMessageOrACrash) {
  std::mt19937 random(1);
  for (int run = 0; run < 200; ++run) {
    auto reader = make_pair().reader;
    Handshake listener(Role::Listener, "secret", nonce_of(2));
    for (int part = 0; part < 5; ++part) {
      Bytes bytes(random() % 100);
      for (auto& byte : bytes) byte = static_cast<std::byte>(random() % (run % 2 == 0 ? 2 : 256));
      reader.feed(bytes);
      const auto message = reader.next();
      EXPECT_FALSE(message && message->has_value());
      BytesView in(bytes);
      if (part == 0) (void)listener.feed(in);
      EXPECT_FALSE(listener.done());
    }
  }
}

}  // namespace
}  // namespace holdfast::world
