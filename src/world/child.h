// One child, from its start to the moment it is reaped.
#pragma once

#include <asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "world/fd.h"
#include "world/output.h"
#include "world/processes.h"
#include "world/real_loop.h"

namespace holdfast::world {

/// Shared by the Process that shows it to the user, the asio handlers that watch it, and the list of all children.
/// A child that has exited stays a zombie, so that its pid and its process group stay its own, until its last event
/// has been delivered.
class Child : public std::enable_shared_from_this<Child> {
 public:
  /// `tag` is in the environment of the child and of what it starts.
  Child(RealLoop& loop, pid_t pid, Fd pidfd, std::string tag, ProcessEvents events, OutputEnds out, OutputEnds err);
  /// Starts delivering events. `on_reaped` runs once the pid is free.
  void watch(std::function<void()> on_reaped);
  /// Its user is gone: no more events to him.
  void forget_events();

  pid_t pid() const { return pid_; }
  const std::string& tag() const { return tag_; }
  bool running() const { return !status_; }
  void signal(int number);
  void signal_group(int number);
  Result<std::pair<Nanos, char>> usage() const;

  /// SIGCHLD came: looks for stops, continues and the exit.
  void look();
  /// True once it has exited. Does not reap.
  bool exited();
  /// As far as it has exited. The exit is still told from the loop. True once it is gone.
  bool reap_now();
  int pidfd() { return pidfd_.native_handle(); }

 private:
  void wait_for_exit();
  void report_exit();
  void reap();

  RealLoop& loop_;
  pid_t pid_;
  asio::posix::stream_descriptor pidfd_;
  std::string tag_;
  std::shared_ptr<const ProcessEvents> events_;  // shared, so that they may be forgotten while one runs
  std::shared_ptr<Output> out_;
  std::shared_ptr<Output> err_;
  std::function<void()> on_reaped_;
  std::optional<ExitStatus> status_;
  bool exit_reported_ = false;
  bool reaped_ = false;
};

/// The user's view of a child.
class ChildProcess final : public Process {
 public:
  explicit ChildProcess(std::shared_ptr<Child> child) : child_(std::move(child)) {}
  ~ChildProcess() override { child_->forget_events(); }
  pid_t pid() const override { return child_->pid(); }
  bool running() const override { return child_->running(); }
  void signal(int number) override { child_->signal(number); }
  void signal_group(int number) override { child_->signal_group(number); }
  Result<std::pair<Nanos, char>> usage() override { return child_->usage(); }

 private:
  std::shared_ptr<Child> child_;
};

}  // namespace holdfast::world
