// For tests of the real world: a loop that is served until something has happened, and what is asked of processes.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "world/pidfd.h"
#include "world/real_loop.h"

namespace holdfast::world {

/// True as soon as `met`; false where it is not met in time, which no passing test waits for.
inline bool serve_until(RealLoop& loop, const std::function<bool()>& met) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!met()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    loop.call_after(std::chrono::milliseconds(1), [&loop] { loop.stop(); });
    loop.run();
  }
  return true;
}

/// Lets everything happen that would happen soon.
inline void serve_for(RealLoop& loop, Nanos time) {
  loop.call_after(time, [&loop] { loop.stop(); });
  loop.run();
}

/// Knows a process however its pid is reused.
class Watched {
 public:
  explicit Watched(pid_t pid) : pidfd_(open_pidfd(pid)) { EXPECT_TRUE(pidfd_) << "no process " << pid; }
  bool alive() { return !ends_within(std::chrono::milliseconds(0)); }
  bool ends_within(std::chrono::milliseconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    pollfd waited{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      const int ready = ::poll(&waited, 1, std::max(0, static_cast<int>(left.count())));
      if (ready >= 0 || errno != EINTR) return ready == 1;
    }
  }

 private:
  Fd pidfd_;
};

/// A process that sleeps, forked past Holdfast: killed and reaped at the end of the test.
class Bystander {
 public:
  explicit Bystander(bool own_session) : pid_(::fork()) {
    if (pid_ != 0) return;
    if (own_session) ::setsid();
    for (;;) ::pause();
  }
  ~Bystander() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Bystander(const Bystander&) = delete;
  Bystander& operator=(const Bystander&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

class TempDir {
 public:
  TempDir() {
    std::string name = std::filesystem::temp_directory_path() / "holdfast-test-XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
    EXPECT_FALSE(path_.empty());
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace holdfast::world
