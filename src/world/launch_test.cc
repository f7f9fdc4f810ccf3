#include "world/launch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "world/real_fixture.h"

namespace holdfast::world {
namespace {

/// Runs a shell script to its end and returns what it wrote.
std::string output_of(const std::string& script, Launch what = {}) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  what.argv = {"sh", "-c", script};
  what.out = writing.get();
  const auto pid = launch(what);
  EXPECT_TRUE(pid) << pid.error().message();
  writing.reset();
  std::string text;
  char chunk[4096];
  for (ssize_t got = 0; (got = ::read(reading.get(), chunk, sizeof chunk)) > 0;) {
    text.append(chunk, static_cast<std::size_t>(got));
  }
  if (pid) ::waitpid(*pid, nullptr, 0);
  return text;
}

/// The signals of one line of /proc/PID/status: bit n for signal n + 1.
std::uint64_t signal_set(const std::string& status, const std::string& name) {
  const auto at = status.find(name);
  EXPECT_NE(at, std::string::npos) << status;
  return at == std::string::npos ? ~std::uint64_t{0} : std::stoull(status.substr(at + name.size()), nullptr, 16);
}

TEST(Launch, GivesTheChildOurEnvironmentWithItsOwnOnTop) {
  ::setenv("HOLDFAST_TEST_KEPT", "kept", 1);
  ::setenv("HOLDFAST_TEST_CHANGED", "old", 1);
  const std::string seen = output_of(
      "echo $HOLDFAST_TEST_KEPT $HOLDFAST_TEST_CHANGED $HOLDFAST_TEST_ADDED",
      {.argv = {}, .env = {{"HOLDFAST_TEST_CHANGED", "new"}, {"HOLDFAST_TEST_ADDED", "added"}}, .cwd = {}, .keep = {}});
  EXPECT_EQ(seen, "kept new added\n");
}

TEST(Launch, StartsTheChildInItsDirectory) {
  EXPECT_EQ(output_of("pwd", {.argv = {}, .env = {}, .cwd = "/usr", .keep = {}}), "/usr\n");
}

TEST(Launch, MakesTheChildLeaderOfASessionAndGroup) {
  // Fields after the name: state, parent, group, session.
  EXPECT_EQ(output_of("pid=$$; set -- $(sed 's/.*)//' /proc/$$/stat); test $3 = $pid && test $4 = $pid && echo yes"),
            "yes\n");
}

TEST(Launch, LeavesTheChildNoDescriptorsButThoseNamed) {
  const Fd leaky(::open("/dev/null", O_RDONLY));  // without O_CLOEXEC, as a careless library would
  const Fd kept(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_LT(kept.get(), 20);
  const std::string seen = output_of("for fd in $(seq 3 20); do test -e /proc/$$/fd/$fd && echo $fd; done",
                                     {.argv = {}, .env = {}, .cwd = {}, .keep = {kept.get()}});
  EXPECT_EQ(seen, std::to_string(kept.get()) + "\n");
}

TEST(Launch, StartsTheChildWithDefaultUnblockedSignals) {
  sigset_t one;
  sigset_t before;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &one, &before);
  const auto old = ::signal(SIGUSR2, SIG_IGN);
  const std::string seen = output_of("grep -E 'SigBlk|SigIgn' /proc/self/status");
  ::signal(SIGUSR2, old);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(signal_set(seen, "SigBlk:"), 0U) << seen;
  // Signals 32 and 33 are the C library's own: it lets nobody set them, and takes them itself when it needs them.
  EXPECT_EQ(signal_set(seen, "SigIgn:") & ~(std::uint64_t{3} << 31), 0U) << seen;
}

TEST(Launch, SaysWhichProgramIsMissing) {
  const auto by_name = launch({.argv = {"no-such-program"}, .env = {}, .cwd = {}, .keep = {}});
  ASSERT_FALSE(by_name);
  EXPECT_EQ(by_name.error().code(), Code::NotFound);
  EXPECT_NE(by_name.error().message().find("no-such-program"), std::string::npos);
  const auto by_path = launch({.argv = {"/no/such"}, .env = {}, .cwd = {}, .keep = {}});
  ASSERT_FALSE(by_path);
  EXPECT_EQ(by_path.error().message(), "start /no/such: No such file or directory");
}

TEST(Launch, SaysThatAProgramMayNotBeRun) {
  const auto started = launch({.argv = {"/etc/passwd"}, .env = {}, .cwd = {}, .keep = {}});
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code(), Code::Denied);
}

TEST(Launch, SaysThatTheDirectoryIsMissing) {
  const auto started = launch({.argv = {"true"}, .env = {}, .cwd = "/no/such", .keep = {}});
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message().find("/no/such"), std::string::npos);
}

TEST(Launch, RefusesAnEmptyCommand) {
  EXPECT_EQ(launch({.argv = {}, .env = {}, .cwd = {}, .keep = {}}).error().code(), Code::BadInput);
  EXPECT_EQ(launch({.argv = {""}, .env = {}, .cwd = {}, .keep = {}}).error().code(), Code::NotFound);
}

}  // namespace
}  // namespace holdfast::world
