#include "world/child.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include <cerrno>

#include "base/check.h"
#include "world/os_error.h"
#include "world/pidfd.h"
#include "world/proc_files.h"

namespace holdfast::world {
namespace {

// A debugger that holds a dead child hides it from us; its letting go is not always announced.
constexpr std::chrono::milliseconds kHiddenExitPause{50};

ExitStatus status_of(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return {.code = info.si_status, .signal = 0};
  return {.code = 0, .signal = info.si_status};
}

std::shared_ptr<Output> make_output(RealLoop& loop, OutputEnds& ends, Output::Receiver receiver) {
  if (!ends.ours) return nullptr;
  return std::make_shared<Output>(loop, std::move(ends.ours), std::move(ends.log_file), std::move(receiver));
}

}  // namespace

Child::Child(RealLoop& loop, pid_t pid, Fd pidfd, std::string tag, ProcessEvents events, OutputEnds out, OutputEnds err)
    : loop_(loop),
      pid_(pid),
      pidfd_(loop.context(), pidfd.release()),
      tag_(std::move(tag)),
      events_(std::make_shared<const ProcessEvents>(std::move(events))) {
  CHECK(pid_ > 1);
  const auto to = [this](Stream stream) {
    return [this, stream](BytesView bytes) {
      const auto now = events_;
      if (now->on_output) now->on_output(stream, bytes);
    };
  };
  out_ = make_output(loop, out, to(Stream::Out));
  err_ = make_output(loop, err, to(Stream::Err));
}

void Child::watch(std::function<void()> on_reaped) {
  on_reaped_ = std::move(on_reaped);
  if (out_) out_->start();
  if (err_) err_->start();
  wait_for_exit();
  loop_.post([self = shared_from_this()] { self->look(); });  // it may have stopped before it was ours
}

void Child::forget_events() { events_ = std::make_shared<const ProcessEvents>(); }

void Child::wait_for_exit() {
  pidfd_.async_wait(asio::posix::descriptor_base::wait_read,
                    [self = shared_from_this()](const asio::error_code& failure) {
                      if (failure || self->exit_reported_) return;
                      if (self->exited()) return self->report_exit();
                      self->loop_.call_after(kHiddenExitPause, [self] {
                        if (!self->exit_reported_) self->wait_for_exit();
                      });
                    });
}

bool Child::exited() {
  if (status_) return true;
  siginfo_t info{};
  if (::waitid(P_PIDFD, static_cast<id_t>(pidfd_.native_handle()), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
    if (errno != ECHILD) return false;
    reaped_ = true;  // somebody else's wait() in this process took it; its status with it
    status_ = ExitStatus{};
    return true;
  }
  if (info.si_pid == 0) return false;
  status_ = status_of(info);
  return true;
}

void Child::report_exit() {
  if (std::exchange(exit_reported_, true)) return;
  const auto self = shared_from_this();  // the callbacks may drop every other owner
  if (out_) out_->finish();
  if (err_) err_->finish();
  const auto events = events_;
  forget_events();
  if (events->on_exit) events->on_exit(*status_);
  reap();
}

void Child::reap() {
  if (!reaped_) {
    siginfo_t info{};
    ::waitid(P_PIDFD, static_cast<id_t>(pidfd_.native_handle()), &info, WEXITED | WNOHANG);
    reaped_ = true;
  }
  if (pidfd_.is_open()) pidfd_.close();
  if (const auto on_reaped = std::exchange(on_reaped_, nullptr)) on_reaped();
}

bool Child::reap_now() {
  if (!exited()) return false;
  if (!exit_reported_) {
    loop_.post([self = shared_from_this()] { self->report_exit(); });
  }
  reap();
  return true;
}

void Child::look() {
  const auto self = shared_from_this();
  while (!status_ && pidfd_.is_open()) {
    siginfo_t info{};
    const auto fd = static_cast<id_t>(pidfd_.native_handle());
    if (::waitid(P_PIDFD, fd, &info, WSTOPPED | WCONTINUED | WNOHANG) != 0 || info.si_pid == 0) break;
    const auto events = events_;
    const auto& event = info.si_code == CLD_CONTINUED ? events->on_continued : events->on_stopped;
    if (event) event();
  }
}

void Child::signal(int number) {
  if (status_) return;
  signal_pidfd(pidfd_.native_handle(), number);
}

void Child::signal_group(int number) {
  if (reaped_) return;  // until then the leader, dead or alive, keeps the group's number from being anyone else's
  ::kill(-pid_, number);
}

Result<std::pair<Nanos, char>> Child::usage() const {
  const std::string doing = "usage of process " + std::to_string(pid_);
  if (reaped_) return Error(Code::NotFound, doing + ": it is gone");
  const ProcStat stat = TRY(read_proc_stat(pid_), doing);
  clockid_t clock{};
  timespec used{};
  // Nanoseconds where the kernel still counts them; a zombie only has its ticks.
  if (::clock_getcpuclockid(pid_, &clock) == 0 && ::clock_gettime(clock, &used) == 0) {
    return std::pair{std::chrono::seconds(used.tv_sec) + Nanos(used.tv_nsec), stat.state};
  }
  return std::pair{stat.cpu, stat.state};
}

}  // namespace holdfast::world
