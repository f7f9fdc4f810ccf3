// All children of this process that Holdfast started, and the orphans they leave us: who is to be reaped, who killed.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "world/child.h"
#include "world/proc_files.h"

namespace holdfast::world {

/// Variable that marks a child and everything started from it.
constexpr const char* kTagVariable = "HOLDFAST_SPAWN_TAG";

/// Each child of ours leads a session of its own, so whatever carries another session than ours descends from one of
/// them. What is in our session is never touched, nor what was our child before this object was made, unless its tag
/// tells that it comes from an agent of Holdfast whose orphans we are to end.
class Family {
 public:
  Family(RealLoop& loop, bool subreaper);
  bool subreaper() const { return subreaper_; }
  std::string make_tag();
  /// Takes charge of our direct child `pid`. Errors: Internal (not our child, or no longer).
  Result<std::shared_ptr<Child>> adopt(pid_t pid, std::string tag, ProcessEvents events, OutputEnds out,
                                       OutputEnds err);
  /// While a fork server works on a request, a zombie may be what it forked: it is not reaped before we know.
  void forks_pending(int change);
  /// SIGCHLD came.
  void look();
  std::vector<pid_t> kill_all(Nanos patience);

 private:
  struct Orphan {
    pid_t pid;
    ProcStat stat;
  };
  std::vector<Orphan> orphans();
  bool foreign(pid_t pid);
  bool of_a_dead_child(const Orphan& orphan) const;
  /// Reaps dead orphans and kills those whose family is dead.
  void sweep();
  void reaped(pid_t pid, const std::string& tag);
  std::vector<pid_t> kill_round();

  RealLoop& loop_;
  bool subreaper_;
  pid_t our_session_;
  std::set<pid_t> before_us_;
  std::string inherited_tag_;  // marks all that our own ancestors started: it proves nothing
  std::string tag_prefix_;
  std::uint64_t last_tag_ = 0;
  std::map<pid_t, std::shared_ptr<Child>> children_;
  std::set<std::string> live_tags_;
  std::deque<pid_t> dead_;  // most recent last
  int forks_pending_ = 0;
};

}  // namespace holdfast::world
