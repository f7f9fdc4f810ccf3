#include "world/real_processes.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "base/check.h"
#include "world/fork_link.h"
#include "world/launch.h"
#include "world/os_error.h"
#include "world/shared_memory.h"

namespace holdfast::world {
namespace {

void unblock(int number) {
  sigset_t one;
  ::sigemptyset(&one);
  ::sigaddset(&one, number);
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
}

/// Descriptors 0 to 2 must not become a pipe of ours by accident.
void hold_standard_descriptors() {
  for (int fd = ::open("/dev/null", O_RDWR); fd >= 0; fd = ::open("/dev/null", O_RDWR)) {
    if (fd <= STDERR_FILENO) continue;
    ::close(fd);
    return;
  }
}

class RealForkServer final : public ForkServer {
 public:
  RealForkServer(std::shared_ptr<ForkLink> link, std::shared_ptr<Child> server)
      : link_(std::move(link)), process_(std::move(server)) {}
  ~RealForkServer() override { link_->close(); }
  void fork(const SpawnSpec& spec, ProcessEvents events,
            std::function<void(Result<std::unique_ptr<Process>>)> done) override {
    link_->fork(spec, std::move(events), std::move(done));
  }
  Process& process() override { return process_; }

 private:
  std::shared_ptr<ForkLink> link_;  // shared with the asio handler that waits for the server's answers
  ChildProcess process_;
};

}  // namespace

RealProcesses::RealProcesses(RealLoop& loop, bool subreaper, const ProcessPolicy& policy)
    : loop_(loop), policy_(policy), family_(loop, subreaper), child_signals_(loop.context()) {
  if (subreaper) start_watching();
}

void RealProcesses::start_watching() {
  if (std::exchange(watching_, true)) return;
  hold_standard_descriptors();
  child_signals_.add(SIGCHLD);
  unblock(SIGCHLD);
  next_child_signal();
}

void RealProcesses::next_child_signal() {
  child_signals_.async_wait([this](const asio::error_code& failure, int) {
    if (failure) return;
    next_child_signal();
    family_.look();
  });
}

Result<std::shared_ptr<Child>> RealProcesses::start(const SpawnSpec& spec, ProcessEvents events, int socket) {
  start_watching();
  const std::string doing = "spawn " + (spec.argv.empty() ? std::string("nothing") : spec.argv[0]);
  OutputEnds out = TRY(open_output(spec.out), doing);
  OutputEnds err = TRY(open_output(spec.err), doing);
  Launch launch_spec{.argv = spec.argv,
                     .env = spec.env,
                     .cwd = spec.cwd,
                     .out = out.child.get(),
                     .err = err.child.get(),
                     .keep = {},
                     .die_with_us = spec.die_with_us};
  const std::string tag = family_.make_tag();
  launch_spec.env[kTagVariable] = tag;
  const auto keep = [&](const char* variable, int fd) {
    if (fd < 0) return;
    launch_spec.keep.push_back(fd);
    launch_spec.env[variable] = std::to_string(fd);
  };
  keep("HOLDFAST_RING_FD", ring_fd(spec));
  keep("HOLDFAST_FORK_FD", socket);
  const pid_t pid = TRY(launch(launch_spec), doing);
  out.child.reset();
  err.child.reset();
  return family_.adopt(pid, tag, std::move(events), std::move(out), std::move(err));
}

Result<std::unique_ptr<Process>> RealProcesses::spawn(const SpawnSpec& spec, ProcessEvents events) {
  auto child = start(spec, std::move(events), /*socket=*/-1);
  if (!child) return std::move(child).error();
  return std::unique_ptr<Process>(std::make_unique<ChildProcess>(*std::move(child)));
}

Result<std::unique_ptr<ForkServer>> RealProcesses::spawn_fork_server(const SpawnSpec& spec, ProcessEvents events,
                                                                     std::function<void(Result<int>)> on_ready) {
  if (!family_.subreaper()) return Error(Code::Internal, "spawn a fork server: this process is no child subreaper");
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return os_error(errno, "spawn a fork server: make a socket");
  }
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  auto link = std::make_shared<ForkLink>(loop_, family_, std::move(ours), policy_.fork_patience, std::move(on_ready));
  events.on_exit = [link, on_exit = std::move(events.on_exit)](ExitStatus status) {
    link->server_exited();
    if (on_exit) on_exit(status);
  };
  auto server = start(spec, std::move(events), theirs.get());
  if (!server) return std::move(server).error();
  link->start();
  return std::unique_ptr<ForkServer>(std::make_unique<RealForkServer>(std::move(link), *std::move(server)));
}

Result<std::unique_ptr<SharedMemory>> RealProcesses::make_shared_memory(std::size_t bytes) {
  return RealSharedMemory::make(bytes);
}

std::vector<pid_t> RealProcesses::kill_all(Nanos patience) { return family_.kill_all(patience); }

void RealProcesses::on_signal(int number, std::function<void()> fn) {
  CHECK(number != SIGCHLD && number != SIGKILL && number != SIGSTOP);
  auto& signals = *signals_.emplace_back(std::make_unique<asio::signal_set>(loop_.context(), number));
  unblock(number);
  // The handler starts itself anew, so it holds itself.
  struct Next {
    asio::signal_set& signals;
    std::shared_ptr<const std::function<void()>> fn;
    void wait() const {
      signals.async_wait([next = *this](const asio::error_code& failure, int) {
        if (failure) return;
        next.wait();
        (*next.fn)();
      });
    }
  };
  Next{signals, std::make_shared<const std::function<void()>>(std::move(fn))}.wait();
}

}  // namespace holdfast::world
