#include "world/launch.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "world/fd.h"
#include "world/os_error.h"

namespace holdfast::world {
namespace {

/// All a child needs between fork and exec, where it may not allocate.
struct Prepared {
  const char* program;
  char* const* argv;
  char* const* envp;
  const char* cwd;
  int out;
  int err;
  const std::vector<int>* keep;
  bool die_with_us;
  pid_t parent;
  int failure_pipe;
};

[[noreturn]] void give_up(int pipe) {
  const int why = errno;
  (void)!::write(pipe, &why, sizeof why);
  ::_exit(127);
}

void reset_signals() {
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &standard, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// Runs in the child, possibly in memory shared with us (vfork): system calls only.
[[noreturn]] void become(const Prepared& what) {
  if (::setsid() < 0) give_up(what.failure_pipe);
  if (what.die_with_us) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != what.parent) ::_exit(127);  // we died before the line above could notice
  }
  if (what.out >= 0 && ::dup2(what.out, STDOUT_FILENO) < 0) give_up(what.failure_pipe);
  if (what.err >= 0 && ::dup2(what.err, STDERR_FILENO) < 0) give_up(what.failure_pipe);
  ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);  // also what libraries opened without thinking of us
  for (const int fd : *what.keep) {
    if (::fcntl(fd, F_SETFD, 0) < 0) give_up(what.failure_pipe);
  }
  if (what.cwd[0] != '\0' && ::chdir(what.cwd) != 0) give_up(what.failure_pipe);
  reset_signals();
  ::execve(what.program, what.argv, what.envp);
  give_up(what.failure_pipe);
}

/// Handlers of ours must not run in the child while it shares our memory, so nothing is delivered until it is itself.
pid_t fork_into(const Prepared& what) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork): a fork copies our page tables
  if (pid == 0) become(what);
  const int failed = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = failed;
  return pid;
}

std::map<std::string, std::string> merged_environment(const std::map<std::string, std::string>& added) {
  std::map<std::string, std::string> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    if (equals != std::string::npos) all[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : added) all[name] = value;
  return all;
}

Result<std::string> find_program(const std::string& name, const std::map<std::string, std::string>& env) {
  if (name.find('/') != std::string::npos) return name;
  const auto path = env.find("PATH");
  std::string rest = path != env.end() ? path->second : "/usr/bin:/bin";
  while (!name.empty()) {
    const auto colon = rest.find(':');
    const std::string candidate = rest.substr(0, colon) + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    if (colon == std::string::npos) break;
    rest = rest.substr(colon + 1);
  }
  return Error(Code::NotFound, "\"" + name + "\" is not in PATH");
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> list;
  list.reserve(strings.size() + 1);
  for (auto& text : strings) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

/// What the child reported before it gave up; 0 where its exec closed the pipe.
int failure_in(int pipe) {
  int why = 0;
  ssize_t got = 0;
  do {
    got = ::read(pipe, &why, sizeof why);
  } while (got < 0 && errno == EINTR);
  return got == sizeof why ? why : 0;
}

}  // namespace

Result<pid_t> launch(const Launch& what) {
  if (what.argv.empty()) return Error(Code::BadInput, "start a program: no program is named");
  const auto env = merged_environment(what.env);
  const std::string program = TRY(find_program(what.argv[0], env), "start a program");
  const std::string doing = "start " + program;
  std::vector<std::string> argv = what.argv;
  std::vector<std::string> entries;
  entries.reserve(env.size());
  for (const auto& [name, value] : env) entries.emplace_back(name).append("=").append(value);
  const auto argv_list = pointers(argv);
  const auto env_list = pointers(entries);

  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return os_error(errno, doing);
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  const Prepared prepared{.program = program.c_str(),
                          .argv = argv_list.data(),
                          .envp = env_list.data(),
                          .cwd = what.cwd.c_str(),
                          .out = what.out,
                          .err = what.err,
                          .keep = &what.keep,
                          .die_with_us = what.die_with_us,
                          .parent = ::getpid(),
                          .failure_pipe = writing.get()};
  const pid_t pid = fork_into(prepared);
  if (pid < 0) return os_error(errno, doing);
  writing.reset();
  const int failed = failure_in(reading.get());
  if (failed == 0) return pid;
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
  return os_error(failed, what.cwd.empty() ? doing : doing + " in " + what.cwd);
}

}  // namespace holdfast::world
