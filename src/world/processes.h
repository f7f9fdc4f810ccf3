// Child processes, owned: each has a process group of its own, is watched through a pidfd, and is signalled through
// it, so a recycled pid is never hit. Nothing here can signal a process that we did not start.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "world/clock.h"

namespace holdfast::world {

/// Anonymous memory shared with one child: it maps descriptor number `HOLDFAST_RING_FD` of its environment.
/// The pages live as long as anyone maps them, so nothing is left behind after a SIGKILL.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  virtual std::span<std::byte> bytes() = 0;
};

struct ExitStatus {
  int code = 0;    ///< exit code where `signal` is 0
  int signal = 0;  ///< the signal that ended it
  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
};

enum class Stream : std::uint8_t { Out, Err };

/// What to do with one of a child's output streams. Neither: the child keeps ours.
struct OutputSpec {
  bool to_callback = true;          ///< whole chunks, as read, to `ProcessEvents::on_output`
  std::optional<std::string> file;  ///< and/or appended to this file (without a callback the child writes it directly)
};

/// Callbacks run on the loop. `on_exit` comes once, after the last output that was ready; none comes after it.
struct ProcessEvents {
  std::function<void(ExitStatus)> on_exit;
  std::function<void()> on_stopped;    ///< SIGSTOP and kin (waitid WSTOPPED)
  std::function<void()> on_continued;  ///< SIGCONT
  std::function<void(Stream, BytesView)> on_output;
};

struct SpawnSpec {
  std::vector<std::string> argv;           ///< argv[0] is looked up in PATH
  std::map<std::string, std::string> env;  ///< added to (and overriding) our environment
  std::string cwd;                         ///< "" keeps ours
  OutputSpec out, err;
  SharedMemory* ring = nullptr;  ///< passed on as HOLDFAST_RING_FD
  bool die_with_us = true;       ///< SIGKILL it when this process dies, however
};

/// A child. Destroying it does not end the process: kill it first and wait for `on_exit`.
class Process {
 public:
  virtual ~Process() = default;
  virtual pid_t pid() const = 0;
  virtual bool running() const = 0;
  /// To the process alone. Nothing happens once it has exited.
  virtual void signal(int number) = 0;
  /// To its whole process group (helpers it forked, such as data-loading workers), also just after it has exited:
  /// the group is signalled before the leader is reaped.
  virtual void signal_group(int number) = 0;
  /// User plus system CPU time so far, and the state letter of /proc/PID/stat ('R', 'S', 'D', 'T', 'Z').
  virtual Result<std::pair<Nanos, char>> usage() = 0;
};

/// A child that has imported what ranks need and forks them on request, in milliseconds. It never has a thread.
/// Real: a Python process speaking docs/format-fork-server.md over an inherited socket.
class ForkServer {
 public:
  virtual ~ForkServer() = default;
  /// As Processes::spawn, but forked from the server; `argv` is the script and its arguments as the server's
  /// protocol takes them. `done` runs on the loop, with Unavailable where the server died or did not answer in 10 s.
  virtual void fork(const SpawnSpec& spec, ProcessEvents events,
                    std::function<void(Result<std::unique_ptr<Process>>)> done) = 0;
  virtual Process& process() = 0;
};

class Processes {
 public:
  virtual ~Processes() = default;
  virtual Result<std::unique_ptr<Process>> spawn(const SpawnSpec& spec, ProcessEvents events) = 0;
  /// Starts `spec` as a fork server. `on_ready` gets its greeting: Ok(number of threads it has), or why it can't serve:
  /// BadInput in its own words, Unavailable where it died or is of another version.
  virtual Result<std::unique_ptr<ForkServer>> spawn_fork_server(const SpawnSpec& spec, ProcessEvents events,
                                                                std::function<void(Result<int> threads)> on_ready) = 0;
  virtual Result<std::unique_ptr<SharedMemory>> make_shared_memory(std::size_t bytes) = 0;
  /// Kills (SIGKILL) and reaps every child that is left, adopted orphans of dead ranks among them. Blocks at most
  /// `patience`; returns the pids that would not die.
  virtual std::vector<pid_t> kill_all(Nanos patience) = 0;
  /// SIGTERM, SIGINT, SIGUSR1, ... sent to us arrive on the loop.
  virtual void on_signal(int number, std::function<void()> fn) = 0;
};

}  // namespace holdfast::world
