#include "world/sockets.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>

#include "world/fd.h"

namespace holdfast::world {
namespace {

/// Two connected TCP sockets and the one that listened for them.
struct Pair {
  Fd listening{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  Fd one{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  Fd other;

  Pair() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* at = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listening.get(), at, size), 0);
    EXPECT_EQ(::listen(listening.get(), 1), 0);
    EXPECT_EQ(::getsockname(listening.get(), at, &size), 0);
    EXPECT_EQ(::connect(one.get(), at, size), 0);
    other.reset(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_TRUE(other);
  }
};

std::vector<int> numbers(const std::vector<OpenSocket>& sockets) {
  std::vector<int> fds;
  for (const OpenSocket& socket : sockets) fds.push_back(socket.fd);
  return fds;
}

/// Broken: reading ends at once instead of waiting.
bool broken(int fd) {
  char byte = 0;
  return ::recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

TEST(Sockets, ThoseOpenedSinceAreTheConnectedOnesAlone) {
  const auto before = open_tcp_sockets();
  const Pair pair;
  const Fd datagram(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const Fd local(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(numbers(opened_since(before, open_tcp_sockets())), (std::vector<int>{pair.one.get(), pair.other.get()}));
}

TEST(Sockets, BrokenOnesEndTheirReadersWhileOthersStay) {
  const Pair kept;
  const auto before = open_tcp_sockets();
  const Pair pair;
  break_sockets(opened_since(before, open_tcp_sockets()));
  EXPECT_TRUE(broken(pair.one.get()));
  EXPECT_TRUE(broken(pair.other.get()));
  EXPECT_FALSE(broken(kept.one.get()));
}

TEST(Sockets, ANumberThatNowIsAnotherSocketIsLeftAlone) {
  const auto before = open_tcp_sockets();
  auto pair = std::make_unique<Pair>();
  const auto old = opened_since(before, open_tcp_sockets());
  pair.reset();
  const Pair reused;
  ASSERT_EQ(numbers(opened_since(before, open_tcp_sockets())), numbers(old));
  break_sockets(old);
  EXPECT_FALSE(broken(reused.one.get()));
}

}  // namespace
}  // namespace holdfast::world
