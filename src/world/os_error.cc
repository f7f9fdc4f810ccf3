#include "world/os_error.h"

#include <cerrno>
#include <cstring>

namespace holdfast::world {
namespace {

Code code_of(int number) {
  switch (number) {
    case ENOENT:
    case ENOTDIR: return Code::NotFound;
    case EACCES:
    case EPERM:
    case EROFS: return Code::Denied;
    case EAGAIN:
    case EADDRINUSE:
    case EADDRNOTAVAIL:
    case ECONNREFUSED:
    case ECONNRESET:
    case EDQUOT:
    case EHOSTUNREACH:
    case EIO:
    case EMFILE:
    case ENETUNREACH:
    case ENFILE:
    case ENOMEM:
    case ENOSPC:
    case EPIPE:
    case ESTALE:
    case ETIMEDOUT: return Code::Unavailable;
    default: return Code::Internal;
  }
}

}  // namespace

Error os_error(int number, const std::string& what) {
  const char* why = strerrordesc_np(number);
  return {code_of(number), what + ": " + (why != nullptr ? why : "system error " + std::to_string(number))};
}

}  // namespace holdfast::world
