#include "world/family.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <thread>

#include "base/check.h"
#include "world/os_error.h"
#include "world/pidfd.h"

namespace holdfast::world {
namespace {

constexpr std::size_t kDeadRememberedMax = 4096;
constexpr std::chrono::milliseconds kKillPauseMin{1};
constexpr std::chrono::milliseconds kKillPauseMax{10};

}  // namespace

Family::Family(RealLoop& loop, bool subreaper)
    : loop_(loop), subreaper_(subreaper), our_session_(::getsid(0)), tag_prefix_(std::to_string(::getpid()) + "-") {
  if (!subreaper_) return;
  if (const char* inherited = std::getenv(kTagVariable)) inherited_tag_ = inherited;
  CHECK(::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  for (const pid_t pid : children_of_ours()) before_us_.insert(pid);
}

std::string Family::make_tag() { return tag_prefix_ + std::to_string(++last_tag_); }

Result<std::shared_ptr<Child>> Family::adopt(pid_t pid, std::string tag, ProcessEvents events, OutputEnds out,
                                             OutputEnds err) {
  const std::string doing = "watch process " + std::to_string(pid);
  if (pid <= 1 || children_.contains(pid)) return Error(Code::Internal, doing + ": not a new child");
  Fd pidfd = open_pidfd(pid);
  if (!pidfd) return os_error(errno, doing);
  siginfo_t info{};
  const auto id = static_cast<id_t>(pidfd.get());
  if (::waitid(P_PIDFD, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return os_error(errno, doing);
  auto child =
      std::make_shared<Child>(loop_, pid, std::move(pidfd), tag, std::move(events), std::move(out), std::move(err));
  children_.emplace(pid, child);
  std::erase(dead_, pid);
  live_tags_.insert(tag);
  child->watch([this, pid, tag = std::move(tag)] { reaped(pid, tag); });
  return child;
}

void Family::forks_pending(int change) {
  forks_pending_ += change;
  CHECK(forks_pending_ >= 0);
  if (change < 0) sweep();
}

void Family::reaped(pid_t pid, const std::string& tag) {
  children_.erase(pid);
  live_tags_.erase(tag);
  dead_.push_back(pid);
  if (dead_.size() > kDeadRememberedMax) dead_.pop_front();
  sweep();
}

void Family::look() {
  const auto children = children_;  // an event may start or end some
  for (const auto& [pid, child] : children) child->look();
  sweep();
}

std::vector<Family::Orphan> Family::orphans() {
  std::vector<Orphan> found;
  if (!subreaper_) return found;
  for (const pid_t pid : children_of_ours()) {
    if (children_.contains(pid)) continue;
    const auto stat = read_proc_stat(pid);
    if (!stat || stat->parent != ::getpid() || stat->session == our_session_ || foreign(pid)) continue;
    found.push_back({pid, *stat});
  }
  return found;
}

bool Family::foreign(pid_t pid) {
  if (!before_us_.contains(pid)) return false;
  const auto tag = started_with(pid, kTagVariable);
  if (!tag || *tag == inherited_tag_) return true;
  before_us_.erase(pid);  // a zombie has no environment to be asked again
  return false;
}

bool Family::of_a_dead_child(const Orphan& orphan) const {
  // A new session may be what a fork server has just made, under a number that a dead child had before.
  if (forks_pending_ > 0 && orphan.stat.session == orphan.pid) return false;
  if (children_.contains(orphan.stat.session) || children_.contains(orphan.stat.group)) return false;
  const auto died = [this](pid_t pid) { return std::find(dead_.begin(), dead_.end(), pid) != dead_.end(); };
  if (died(orphan.stat.session) || died(orphan.stat.group)) return true;
  // It made a session of its own. Whose it was, its environment tells; if not even that, kill_all gets it at the end.
  const auto tag = started_with(orphan.pid, kTagVariable);
  return tag && tag->starts_with(tag_prefix_) && !live_tags_.contains(*tag);
}

void Family::sweep() {
  for (const Orphan& orphan : orphans()) {
    if (orphan.stat.state == 'Z') {
      if (forks_pending_ == 0) ::waitpid(orphan.pid, nullptr, WNOHANG);
    } else if (of_a_dead_child(orphan)) {
      ::kill(orphan.pid, SIGKILL);  // our direct child, reaped by nobody but us: the pid is still its own
    }
  }
}

std::vector<pid_t> Family::kill_round() {
  std::vector<pid_t> left;
  const auto children = children_;
  for (const auto& [pid, child] : children) {
    child->signal_group(SIGKILL);
    if (!child->reap_now()) left.push_back(pid);
  }
  for (const Orphan& orphan : orphans()) {
    ::kill(orphan.pid, SIGKILL);
    if (::waitpid(orphan.pid, nullptr, WNOHANG) == 0) left.push_back(orphan.pid);
  }
  return left;
}

std::vector<pid_t> Family::kill_all(Nanos patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  auto pause = kKillPauseMin;
  for (;;) {
    auto left = kill_round();
    // An orphan's own children come to us only when it is gone: done is when a round finds nobody.
    if (left.empty() && children_.empty() && orphans().empty()) return {};
    if (std::chrono::steady_clock::now() >= deadline) return left;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kKillPauseMax);
  }
}

}  // namespace holdfast::world
