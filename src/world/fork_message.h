// Packets between us and a fork server, as values. Safe on any text.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"

namespace holdfast::world {

constexpr std::size_t kForkPacketBytesMax = std::size_t{192} << 10;

struct ForkRequest {
  std::uint64_t id = 0;
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;
  std::string cwd;
  bool ring = false;
};

struct ForkReady {
  bool ready = false;
  int threads = 0;
  std::string version;                      ///< of its Holdfast; "" where it does not say
  std::vector<std::string> thread_modules;  ///< whose import started threads
  std::string why;                          ///< it is not ready
};
struct ForkDone {
  std::uint64_t id = 0;
  pid_t pid = 0;
};
struct ForkFailed {
  std::uint64_t id = 0;
  std::string why;
};
using ForkMessage = std::variant<ForkReady, ForkDone, ForkFailed>;

/// Errors: BadInput (larger than a packet may be, or not UTF-8).
Result<std::string> encode(const ForkRequest& request);
/// Errors: BadInput.
Result<ForkMessage> parse_fork_message(std::string_view text);

}  // namespace holdfast::world
