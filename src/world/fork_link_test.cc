#include "world/fork_link.h"

#include <gtest/gtest.h>

#include "world/processes_fixture.h"

namespace holdfast::world {
namespace {

using std::chrono::seconds;

// A fork server that forks commands instead of Python scripts. MODE changes what it does with a request.
constexpr const char* kServer = R"(
import json, os, signal, socket, sys, time
link = socket.socket(fileno=int(os.environ["HOLDFAST_FORK_FD"]))
agent, mode = os.getppid(), os.environ.get("MODE", "")

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})

def say(message):
    link.send(message if isinstance(message, bytes) else json.dumps(message).encode())

def child(request, fds):
    os.setsid()
    while os.getppid() != agent:
        time.sleep(0.001)
    link.close()
    os.dup2(fds[0], 1)
    os.dup2(fds[1], 2)
    if request["cwd"]:
        os.chdir(request["cwd"])
    env = dict(os.environ, **request["env"])
    if "ring" in request["fds"]:
        ring = os.dup(fds[2])
        os.set_inheritable(ring, True)
        env["HOLDFAST_RING_FD"] = str(ring)
    os.execvpe(request["argv"][0], request["argv"], env)

def fork(request, fds):
    reading, writing = os.pipe()
    middle = os.fork()
    if middle == 0:
        pid = os.fork()
        if pid == 0:
            child(request, fds)
        os.write(writing, str(pid).encode())
        os._exit(0)
    os.waitpid(middle, 0)
    pid = int(os.read(reading, 20))
    for fd in [reading, writing, *fds]:
        os.close(fd)
    return pid

say({"ready": False, "why": "no torch"} if mode == "unready" else
    {"ready": True, "threads": 1, "version": "9.9.9" if mode == "version" else "0.1.0", "thread_modules": []})
while True:
    data, fds, _, _ = socket.recv_fds(link, 196608, 3)
    if not data:
        sys.exit(0)
    request = json.loads(data)
    if mode == "die":
        os._exit(3)
    if mode == "fork_and_die":
        fork(request, fds)
        os._exit(3)
    if mode == "refuse":
        say({"failed": request["fork"], "why": "no memory"})
    elif mode == "babble":
        say(b"babble")
    elif mode == "foreign":
        say({"forked": request["fork"], "pid": os.getpid()})
    else:
        pid = fork(request, fds)
        if mode == "late":
            signal.sigwait({signal.SIGUSR1})
        say({"forked": request["fork"], "pid": pid})
)";

class ForkLinkTest : public ProcessesTest {
 protected:
  using ProcessesTest::ProcessesTest;
  void start(const std::string& mode = "") {
    SpawnSpec spec = python(kServer);
    spec.env["MODE"] = mode;
    auto server = processes_.spawn_fork_server(spec, server_.record(), [this](Result<int> threads) {
      ready_ = threads ? "ready " + std::to_string(*threads) : threads.error().message();
    });
    ASSERT_TRUE(server) << server.error().message();
    fork_server_ = *std::move(server);
    ASSERT_TRUE(serve([&] { return !ready_.empty(); })) << server_.err;
  }
  Result<std::unique_ptr<Process>> fork(const SpawnSpec& spec, ProcessEvents events) {
    std::optional<Result<std::unique_ptr<Process>>> answer;
    fork_server_->fork(spec, std::move(events), [&](auto process) { answer = std::move(process); });
    EXPECT_TRUE(serve([&] { return answer.has_value(); })) << server_.err;
    return *std::move(answer);
  }

  Story server_;
  std::string ready_;
  std::unique_ptr<ForkServer> fork_server_;
  Story story_;
};

TEST_F(ForkLinkTest, TellsHowManyThreadsAReadyServerHas) {
  start();
  EXPECT_EQ(ready_, "ready 1");
}

TEST_F(ForkLinkTest, TellsWhyAServerCannotServe) {
  start("unready");
  EXPECT_EQ(ready_, "the fork server can't serve: no torch");
}

TEST_F(ForkLinkTest, RefusesAServerOfAnotherVersion) {
  start("version");
  EXPECT_NE(ready_.find("9.9.9"), std::string::npos) << ready_;
}

TEST_F(ForkLinkTest, ForksAChildWithItsEnvironmentDirectoryAndOutput) {
  start();
  SpawnSpec spec = shell("echo $GREETING; pwd; echo err >&2; exit 5");
  spec.env["GREETING"] = "hello";
  spec.cwd = "/usr";
  const auto process = fork(spec, story_.record());
  ASSERT_TRUE(process) << process.error().message();
  ASSERT_TRUE(serve([&] { return story_.exit.has_value(); }));
  EXPECT_EQ(story_.out, "hello\n/usr\n");
  EXPECT_EQ(story_.err, "err\n");
  EXPECT_EQ(story_.exit->code, 5);
}

TEST_F(ForkLinkTest, HandsOverTheRing) {
  start();
  auto ring = processes_.make_shared_memory(4096);
  ASSERT_TRUE(ring);
  SpawnSpec spec = shell("printf ring > /proc/self/fd/$HOLDFAST_RING_FD");
  spec.ring = ring->get();
  const auto process = fork(spec, story_.record());
  ASSERT_TRUE(serve([&] { return story_.exit.has_value(); }));
  EXPECT_EQ(as_text((*ring)->bytes().first(4)), "ring") << story_.err;
}

TEST_F(ForkLinkTest, ForkedChildrenTellOfStopsAndAreSignalledAsAGroup) {
  start();
  const auto process = fork(shell("sleep 1000 & echo $!; wait"), story_.record());
  ASSERT_TRUE(process);
  Watched helper(number_told(story_));
  (*process)->signal_group(SIGSTOP);
  ASSERT_TRUE(serve([&] { return story_.events == "stopped "; }));
  (*process)->signal_group(SIGKILL);
  ASSERT_TRUE(serve([&] { return story_.exit.has_value(); }));
  EXPECT_TRUE(helper.ends_within(seconds(30)));
}

TEST_F(ForkLinkTest, ServesManyRequestsAtOnce) {
  start();
  std::vector<Story> stories(30);
  std::vector<std::unique_ptr<Process>> processes;
  SpawnSpec spec = shell("exit 0");
  spec.env["BALLAST"] = std::string(50'000, 'x');  // together more than a socket holds
  for (auto& story : stories) {
    fork_server_->fork(spec, story.record(), [&](auto process) {
      ASSERT_TRUE(process) << process.error().message();
      processes.push_back(*std::move(process));
    });
  }
  EXPECT_TRUE(serve([&] {
    return std::all_of(stories.begin(), stories.end(), [](const Story& story) { return story.exit.has_value(); });
  }));
}

TEST_F(ForkLinkTest, ForkedChildrenOutliveTheServer) {
  start();
  const auto process = fork(shell("exec sleep 1000"), story_.record());
  ASSERT_TRUE(process);
  fork_server_->process().signal(SIGKILL);
  ASSERT_TRUE(serve([&] { return server_.exit.has_value(); }));
  serve_for(loop_, std::chrono::milliseconds(20));
  EXPECT_TRUE((*process)->running());
  (*process)->signal(SIGKILL);
  EXPECT_TRUE(serve([&] { return story_.exit.has_value(); }));
}

TEST_F(ForkLinkTest, PassesOnWhyAForkFailed) {
  start("refuse");
  const auto process = fork(shell("exit 0"), story_.record());
  ASSERT_FALSE(process);
  EXPECT_EQ(process.error().code(), Code::Unavailable);
  EXPECT_EQ(process.error().message(), "fork a process: no memory");
}

TEST_F(ForkLinkTest, FailsWhatIsPendingWhenTheServerDiesAndAllThatComesLater) {
  start("die");
  for (int i = 0; i < 2; ++i) {
    const auto process = fork(shell("exit 0"), story_.record());
    ASSERT_FALSE(process);
    EXPECT_EQ(process.error().code(), Code::Unavailable);
  }
  EXPECT_TRUE(serve([&] { return server_.exit.has_value(); }));
}

TEST_F(ForkLinkTest, KillsAChildWhoseServerDiedBeforeItCouldSaySo) {
  start("fork_and_die");
  const TempDir dir;
  SpawnSpec spec = shell("echo $$ > pid.new; mv pid.new pid; exec sleep 1000");
  spec.cwd = dir.path("");
  spec.out.to_callback = false;
  spec.err.to_callback = false;
  const auto process = fork(spec, story_.record());
  ASSERT_FALSE(process);
  ASSERT_TRUE(serve([&] { return server_.exit.has_value(); }));
  const auto nobody_left = [&] {
    const auto children = children_of_ours();
    return children.empty();
  };
  EXPECT_TRUE(serve(nobody_left));
}

class HastyForkLinkTest : public ForkLinkTest {
 protected:
  HastyForkLinkTest() : ForkLinkTest({.fork_patience = std::chrono::milliseconds(50)}) {}
};

TEST_F(HastyForkLinkTest, KillsAChildThatComesAfterItsRequestTimedOut) {
  start("late");
  const auto process = fork(shell("exec sleep 1000"), story_.record());
  ASSERT_FALSE(process);
  EXPECT_EQ(process.error().code(), Code::Unavailable);
  const pid_t server = fork_server_->process().pid();
  fork_server_->process().signal(SIGUSR1);
  EXPECT_TRUE(serve([&] {
    const auto children = children_of_ours();
    return children == std::vector<pid_t>{server};
  }));
  EXPECT_EQ(story_.events, "");
}

TEST_F(ForkLinkTest, HangsUpOnAServerThatBreaksTheProtocol) {
  start("babble");
  const auto process = fork(shell("exit 0"), story_.record());
  ASSERT_FALSE(process);
  EXPECT_TRUE(serve([&] { return server_.exit.has_value(); })) << "it ends when its socket does";
}

TEST_F(ForkLinkTest, RefusesAPidThatIsNoNewChildOfOurs) {
  start("foreign");
  const auto process = fork(shell("exit 0"), story_.record());
  ASSERT_FALSE(process);
  EXPECT_EQ(process.error().code(), Code::Internal);
  EXPECT_TRUE(fork_server_->process().running());
}

TEST_F(ForkLinkTest, EndsTheServerWithItsHandle) {
  start();
  Watched server(fork_server_->process().pid());
  fork_server_.reset();
  EXPECT_TRUE(server.ends_within(seconds(30)));
}

TEST_F(ForkLinkTest, NeedsASubreaper) {
  RealProcesses plain(loop_, /*subreaper=*/false);
  EXPECT_FALSE(plain.spawn_fork_server(python(kServer), {}, [](Result<int>) {}));
}

}  // namespace
}  // namespace holdfast::world
