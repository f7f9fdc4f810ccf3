// Fuzzes the reader of a fork server's packets: any text gives a message in its bounds or an error.
#include <string_view>

#include "base/check.h"
#include "world/fork_message.h"

using namespace holdfast;
using namespace holdfast::world;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto message = parse_fork_message({reinterpret_cast<const char*>(data), size});
  if (!message) {
    CHECK(message.error().code() == Code::BadInput);
    return 0;
  }
  if (const auto* ready = std::get_if<ForkReady>(&*message)) CHECK(ready->threads >= 0);
  if (const auto* done = std::get_if<ForkDone>(&*message)) CHECK(done->pid >= 0);
  return 0;
}
