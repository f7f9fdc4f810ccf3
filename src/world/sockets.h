// The TCP sockets this process has open. Breaking them from another thread is how a rank is freed from a blocked
// collective: the library that waits on them sees an error at once, with no call into it.
#pragma once

#include <sys/types.h>

#include <vector>

namespace holdfast::world {

struct OpenSocket {
  int fd = -1;
  ino_t inode = 0;  ///< tells a descriptor that was closed and given out again
  friend auto operator<=>(const OpenSocket&, const OpenSocket&) = default;
};

/// Sorted. Listening sockets are left out.
std::vector<OpenSocket> open_tcp_sockets();
/// What of `now` was not in `before`; both sorted.
std::vector<OpenSocket> opened_since(const std::vector<OpenSocket>& before, const std::vector<OpenSocket>& now);
/// shutdown(2) both ways, where the descriptor still is that socket.
void break_sockets(const std::vector<OpenSocket>& sockets);

}  // namespace holdfast::world
