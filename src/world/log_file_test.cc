#include "world/log_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "world/real_fixture.h"

namespace holdfast::world {
namespace {

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(LogFile, HoldsInOrderWhatWasAppendedAlsoAfterItIsGone) {
  const TempDir dir;
  RealLoop loop;
  std::string expected;
  {
    LogFile log(loop, Fd(::open(dir.path("log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)));
    for (int i = 0; i < 1000; ++i) {
      const std::string line = std::to_string(i) + "\n";
      log.append(as_bytes(line));
      expected += line;
    }
  }
  EXPECT_TRUE(serve_until(loop, [&] { return text_of(dir.path("log")) == expected; }));
}

TEST(LogFile, DropsWhatTheDiskDoesNotTake) {
  RealLoop loop;
  LogFile log(loop, Fd(::open("/dev/full", O_WRONLY | O_CLOEXEC)));
  for (int i = 0; i < 100; ++i) log.append(Bytes(std::size_t{1} << 20));
  serve_for(loop, std::chrono::milliseconds(20));
}

}  // namespace
}  // namespace holdfast::world
