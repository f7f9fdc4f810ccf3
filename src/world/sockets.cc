#include "world/sockets.h"

#include <dirent.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace holdfast::world {
namespace {

bool connected_tcp(int fd) {
  int domain = 0;
  int type = 0;
  int listening = 0;
  socklen_t size = sizeof domain;
  if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0) return false;
  size = sizeof type;
  if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0) return false;
  size = sizeof listening;
  if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0) return false;
  return (domain == AF_INET || domain == AF_INET6) && type == SOCK_STREAM && listening == 0;
}

ino_t inode_of(int fd) {
  struct stat info{};
  return ::fstat(fd, &info) == 0 ? info.st_ino : 0;
}

}  // namespace

std::vector<OpenSocket> open_tcp_sockets() {
  std::vector<OpenSocket> sockets;
  DIR* directory = ::opendir("/proc/self/fd");
  if (directory == nullptr) return sockets;
  while (const dirent* entry = ::readdir(directory)) {
    char* end = nullptr;
    const long fd = std::strtol(entry->d_name, &end, 10);
    if (end == entry->d_name || *end != '\0' || !connected_tcp(static_cast<int>(fd))) continue;
    sockets.push_back({static_cast<int>(fd), inode_of(static_cast<int>(fd))});
  }
  ::closedir(directory);
  std::sort(sockets.begin(), sockets.end());
  return sockets;
}

std::vector<OpenSocket> opened_since(const std::vector<OpenSocket>& before, const std::vector<OpenSocket>& now) {
  std::vector<OpenSocket> opened;
  std::set_difference(now.begin(), now.end(), before.begin(), before.end(), std::back_inserter(opened));
  return opened;
}

void break_sockets(const std::vector<OpenSocket>& sockets) {
  for (const OpenSocket& socket : sockets) {
    if (inode_of(socket.fd) == socket.inode) ::shutdown(socket.fd, SHUT_RDWR);
  }
}

}  // namespace holdfast::world
