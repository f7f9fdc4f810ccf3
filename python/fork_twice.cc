#include "fork_twice.h"

#include <Python.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace holdfast::python {
namespace {

constexpr int kForkFailed = 100;

Error failed(const char* what, int error) {
  return Error(Code::Unavailable, std::string(what) + ": " + std::strerror(error));
}

// In the new process: leads a session, says so and its pid.
void introduce(int pipe) {
  ::setsid();
  const pid_t self = ::getpid();
  [[maybe_unused]] const ssize_t written = ::write(pipe, &self, sizeof self);
}

// -1: the process between could not be made; 0: in the new process; else the pid of the process between.
// Not inlined: the process between runs on this frame's stack, and must find nothing of its caller's there.
[[gnu::noinline]] pid_t spawn_between(int pipe) {
  const pid_t between = ::vfork();
  if (between != 0) return between;
  const pid_t child = ::fork();
  if (child != 0) ::_exit(child < 0 ? kForkFailed : 0);
  introduce(pipe);
  return 0;
}

int wait_for(pid_t between) {
  int status = 0;
  while (::waitpid(between, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : kForkFailed;
}

}  // namespace

Result<pid_t> fork_twice() {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return failed("make a pipe", errno);
  PyOS_BeforeFork();
  const pid_t between = spawn_between(pipe[1]);
  if (between == 0) {
    PyOS_AfterFork_Child();
    ::close(pipe[0]);
    ::close(pipe[1]);
    return pid_t{0};
  }
  const int error = errno;
  PyOS_AfterFork_Parent();
  ::close(pipe[1]);
  pid_t child = 0;
  const bool made = between > 0 && wait_for(between) == 0;
  const bool introduced = made && ::read(pipe[0], &child, sizeof child) == ssize_t{sizeof child};
  ::close(pipe[0]);
  if (introduced) return child;
  return failed("fork", between < 0 ? error : EAGAIN);
}

}  // namespace holdfast::python
