#include "app/front.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

#include "base/log.h"
#include "world/real_world.h"

namespace holdfast::app {
namespace {

constexpr auto kPatience = std::chrono::seconds(2);

sigset_t forwarded() {
  sigset_t set;
  ::sigemptyset(&set);
  for (int number : {SIGTERM, SIGINT, SIGUSR1, SIGHUP, SIGCHLD}) ::sigaddset(&set, number);
  return set;
}

[[noreturn]] void become_agent(pid_t front, const std::function<int()>& agent) {
  ::setpgid(0, 0);  // a Ctrl-C reaches it through the front alone, once
  ::prctl(PR_SET_PDEATHSIG, front_died_signal());
  if (::getppid() != front) ::_exit(1);
  // Signals stay blocked until the agent is ready to hear them; its children get the mask of every new process.
  const int code = agent();
  std::fflush(nullptr);
  ::_exit(code);
}

int wait_for(pid_t child, const sigset_t& signals) {
  for (;;) {
    int number = 0;
    ::sigwait(&signals, &number);
    if (number != SIGCHLD) {
      ::kill(child, number);  // not reaped yet, so the number is still its own
      continue;
    }
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) != child) continue;
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    log_error("the agent was ended by signal " + std::to_string(WTERMSIG(status)) + "; ending its ranks");
    return 1;
  }
}

}  // namespace

int front_died_signal() { return SIGRTMIN + 1; }

int run_behind_front(const std::function<int()>& agent) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const sigset_t signals = forwarded();
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  const pid_t front = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    log_error("fork: not enough memory or processes");
    return 1;
  }
  if (child == 0) become_agent(front, agent);
  const int code = wait_for(child, signals);
  const auto left = world::make_real_world({.subreaper = true})->processes().kill_all(kPatience);
  for (pid_t pid : left) log_error("process " + std::to_string(pid) + " would not die and is given up");
  return code;
}

}  // namespace holdfast::app
