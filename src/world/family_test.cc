#include "world/family.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>

#include <filesystem>

#include "world/processes_fixture.h"

namespace holdfast::world {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class FamilyTest : public ProcessesTest {
 protected:
  Bystander foreign_{/*own_session=*/false};
};

TEST_F(FamilyTest, KillsTheHelpersThatADeadChildLeft) {
  Story story;
  const auto process = spawn(shell("sleep 1000 & echo $!; wait"), story.record());
  Watched helper(number_told(story));
  process->signal(SIGKILL);  // to it alone
  ASSERT_TRUE(serve([&] { return story.exit.has_value(); }));
  EXPECT_TRUE(helper.ends_within(seconds(30)));
}

TEST_F(FamilyTest, KillsADeadChildsHelperInASessionOfItsOwn) {
  Story story;
  const auto process = spawn(shell("setsid sleep 1000 & echo $!; sleep 1000"), story.record());
  const pid_t pid = number_told(story);
  // It is in its own session once it is the sleep.
  ASSERT_TRUE(serve([&] { return ::getsid(pid) == pid; }));
  Watched helper(pid);
  process->signal(SIGKILL);
  ASSERT_TRUE(serve([&] { return story.exit.has_value(); }));
  EXPECT_TRUE(helper.ends_within(seconds(30)));
}

TEST_F(FamilyTest, SparesTheOrphansOfALiveChild) {
  Story alive;
  const auto living = spawn(shell("(sleep 1000 & echo $!); exec sleep 1000"), alive.record());
  const pid_t pid = number_told(alive);
  Watched orphan(pid);
  ASSERT_TRUE(serve([&] { return read_proc_stat(pid)->parent == ::getpid(); }));
  Story other;
  const auto dying = spawn(shell("exit 0"), other.record());
  ASSERT_TRUE(serve([&] { return other.exit.has_value(); }));
  serve_for(loop_, milliseconds(20));
  EXPECT_TRUE(orphan.alive());
  EXPECT_EQ(processes_.kill_all(seconds(30)), std::vector<pid_t>());
  EXPECT_FALSE(orphan.alive());
}

TEST_F(FamilyTest, LeavesNoZombieOfAnOrphan) {
  Story story;
  const auto process = spawn(shell("(sleep 0.01 & echo $!); exec sleep 1000"), story.record());
  const pid_t orphan = number_told(story);
  EXPECT_TRUE(serve([&] { return !read_proc_stat(orphan); }));
}

TEST_F(FamilyTest, KillAllEndsWholeTreesAndTellsTheOwners) {
  Story story;
  const auto process =
      spawn(shell("trap '' TERM INT; sleep 1000 & setsid sh -c 'sleep 1000 & echo $!; wait' & wait"), story.record());
  Watched deep(number_told(story));
  EXPECT_EQ(processes_.kill_all(seconds(30)), std::vector<pid_t>());
  EXPECT_FALSE(deep.alive());
  EXPECT_FALSE(process->running());
  ASSERT_TRUE(serve([&] { return story.exit.has_value(); }));
  EXPECT_EQ(story.exit->signal, SIGKILL);
}

TEST_F(FamilyTest, KillAllEndsAStoppedChild) {
  Story story;
  const auto process = spawn(shell("exec sleep 1000"), story.record());
  process->signal(SIGSTOP);
  ASSERT_TRUE(serve([&] { return story.events == "stopped "; }));
  EXPECT_EQ(processes_.kill_all(seconds(30)), std::vector<pid_t>());
}

/// Holds `pid` as a debugger does: killed, it stays a zombie that its parent can't reap.
class Tracer {
 public:
  explicit Tracer(pid_t pid) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const Fd reading(ends[0]);
    const Fd writing(ends[1]);
    pid_ = ::fork();
    if (pid_ == 0) {
      const char holding = ::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0 ? 'y' : 'n';
      (void)!::write(writing.get(), &holding, 1);
      for (;;) ::pause();
    }
    char holding = 'n';
    EXPECT_EQ(::read(reading.get(), &holding, 1), 1);
    EXPECT_EQ(holding, 'y') << "ptrace is not allowed here";
  }
  ~Tracer() { let_go(); }
  void let_go() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
};

TEST_F(FamilyTest, Behaviour2AnUnkillableChildIsReportedInBoundedTime) {
  Story story;
  const auto process = spawn(python("import ctypes, time\n"
                                    "ctypes.CDLL(None).prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0)  # any tracer\n"
                                    "print('0', flush=True)\n"
                                    "time.sleep(1000)\n"),
                             story.record());
  number_told(story);
  Tracer tracer(process->pid());
  Story other;
  const auto killable = spawn(shell("exec sleep 1000"), other.record());
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_THAT(processes_.kill_all(milliseconds(100)), testing::Contains(process->pid()));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, seconds(30));
  ASSERT_TRUE(serve([&] { return other.exit.has_value(); }));
  EXPECT_FALSE(story.exit.has_value());

  tracer.let_go();
  EXPECT_TRUE(serve([&] { return story.exit.has_value(); })) << "once it can die, it is reaped and told";
}

TEST(Family, Behaviour3OnlyWhatWeSpawnedIsSignalled) {
  const Bystander earlier(/*own_session=*/true);
  RealLoop loop;
  RealProcesses processes(loop, /*subreaper=*/true);
  const Bystander later(/*own_session=*/false);  // our direct child, too, but by a fork of somebody else's
  Story story;
  auto process = processes.spawn(command({"sh", "-c", "sleep 1000 & exit 0"}), story.record());
  ASSERT_TRUE(process);
  ASSERT_TRUE(serve_until(loop, [&] { return story.exit.has_value(); }));
  (*process)->signal_group(SIGKILL);
  process = processes.spawn(command({"sleep", "1000"}), {});
  ASSERT_TRUE(process);
  EXPECT_EQ(processes.kill_all(seconds(30)), std::vector<pid_t>());
  for (const pid_t pid : {earlier.pid(), later.pid()}) EXPECT_TRUE(Watched(pid).alive()) << pid;
}

TEST(Family, EndsOrphansOfAnAgentThatDiedBeforeItWasMade) {
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t agent = ::fork();
  if (agent == 0) {
    RealLoop loop;
    RealProcesses processes(loop, /*subreaper=*/true);
    SpawnSpec spec = command({"sleep", "1000"});
    spec.die_with_us = false;
    const auto process = processes.spawn(spec, {});
    const pid_t pid = process ? (*process)->pid() : 0;
    (void)!::write(ends[1], &pid, sizeof pid);
    ::raise(SIGKILL);
  }
  pid_t orphan = 0;
  ASSERT_EQ(::read(ends[0], &orphan, sizeof orphan), ssize_t{sizeof orphan});
  Watched watched(orphan);
  ASSERT_EQ(::waitpid(agent, nullptr, 0), agent);
  ::close(ends[0]);
  ::close(ends[1]);

  RealLoop loop;
  EXPECT_EQ(RealProcesses(loop, /*subreaper=*/true).kill_all(seconds(30)), std::vector<pid_t>());
  EXPECT_FALSE(watched.alive());
  EXPECT_EQ(children_of_ours(), std::vector<pid_t>());
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

TEST_F(FamilyTest, BehaviourLeakDescriptorsStayFlatOverAThousandSpawns) {
  std::size_t before = 0;
  auto ring = processes_.make_shared_memory(4096);
  ASSERT_TRUE(ring);
  for (int i = 0; i <= 1000; ++i) {
    if (i == 1) before = open_descriptors();
    SpawnSpec spec = command({"true"});
    spec.ring = ring->get();
    bool exited = false;
    const auto process = spawn(spec, {.on_exit = [&](ExitStatus) { exited = true, loop_.stop(); },
                                      .on_stopped = {},
                                      .on_continued = {},
                                      .on_output = {}});
    while (!exited) loop_.run();
  }
  serve_for(loop_, milliseconds(1));
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(children_of_ours(), std::vector<pid_t>{foreign_.pid()});
}

}  // namespace
}  // namespace holdfast::world
