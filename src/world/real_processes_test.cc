#include "world/real_processes.h"

#include <gtest/gtest.h>

#include "world/processes_fixture.h"

namespace holdfast::world {
namespace {

using std::chrono::seconds;

class RealProcessesTest : public ProcessesTest {};

TEST_F(RealProcessesTest, BringsSignalsSentToUsToTheLoop) {
  int usr1 = 0;
  int term = 0;
  processes_.on_signal(SIGUSR1, [&] { ++usr1; });
  processes_.on_signal(SIGTERM, [&] { ++term; });
  for (int i = 1; i <= 3; ++i) {
    ::kill(::getpid(), SIGUSR1);
    ASSERT_TRUE(serve([&] { return usr1 == i; }));
  }
  ::kill(::getpid(), SIGTERM);
  ASSERT_TRUE(serve([&] { return term == 1; }));
  EXPECT_EQ(usr1, 3);
}

TEST_F(RealProcessesTest, SaysWhatItCouldNotSpawn) {
  const auto process = processes_.spawn(command({"no-such-program"}), {});
  ASSERT_FALSE(process);
  EXPECT_EQ(process.error().code(), Code::NotFound);
}

/// A launcher of its own: spawns `script`, tells the pid that the script prints, and serves on.
[[noreturn]] void launcher(int tell, const std::string& script) {
  RealLoop loop;
  RealProcesses processes(loop, /*subreaper=*/true);
  const auto process =
      processes.spawn(command({"sh", "-c", script}),
                      {.on_exit = {}, .on_stopped = {}, .on_continued = {}, .on_output = [&](Stream, BytesView line) {
                         (void)!::write(tell, line.data(), line.size());
                       }});
  loop.run();
  ::_exit(0);
}

TEST_F(RealProcessesTest, Behaviour4NothingIsLeftTwoSecondsAfterTheLauncherIsKilled) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t pid = ::fork();
  if (pid == 0) launcher(ends[1], "echo $$; exec sleep 1000");
  char text[32] = {};
  ASSERT_GT(::read(ends[0], text, sizeof text - 1), 0);
  Watched worker(std::stoi(text));
  EXPECT_TRUE(worker.alive());
  ::kill(pid, SIGKILL);
  EXPECT_TRUE(worker.ends_within(seconds(2)));
  ::waitpid(pid, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(RealProcessesTest, LeavesSigchldAloneWhereItHasNoChildren) {
  RealLoop loop;
  struct sigaction chld{};
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::signal(SIGCHLD, SIG_DFL);
    const RealProcesses quiet(loop, /*subreaper=*/false);
    ::sigaction(SIGCHLD, nullptr, &chld);
    ::_exit(chld.sa_handler == SIG_DFL ? 0 : 1);
  }
  int status = -1;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace holdfast::world
