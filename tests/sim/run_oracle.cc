#include "tests/sim/run_oracle.h"

#include <algorithm>
#include <cstdio>

namespace holdfast::trial {

using std::chrono::microseconds;
using std::chrono::milliseconds;

namespace {

constexpr std::uint64_t kStream = 7001;
constexpr std::size_t kViolationsMax = 8;
// Most members hear of a completed collective soon after each other, some much later.
constexpr sim::Delay kSoon{microseconds(50), milliseconds(3)};
constexpr sim::Delay kLate{milliseconds(3), milliseconds(25)};
constexpr double kLateShare = 0.1;
constexpr sim::Delay kBreak{milliseconds(1), milliseconds(20)};

std::string name_of(const Place& place) {
  return "process " + std::to_string(place.pid) + " (rank " + std::to_string(place.rank) + ", epoch " +
         std::to_string(place.epoch) + ")";
}

std::string text_of(const State& state) {
  return std::to_string(state.applied) + " steps, hash " + std::to_string(state.hash);
}

}  // namespace

State first_state() { return {.applied = 0, .hash = 0x5eed}; }

State after_step(State state, Step step) {
  return {.applied = step + 1, .hash = sim::mix(state.hash * 31 + static_cast<std::uint64_t>(step) + 1)};
}

State true_state(Step applied) {
  State state = first_state();
  for (Step step = 0; step < applied; ++step) state = after_step(state, step);
  return state;
}

Oracle::Oracle(sim::Cluster& cluster, std::uint32_t world_size, Step steps)
    : cluster_(cluster), random_(cluster.random_for(kStream)), world_size_(world_size), steps_(steps) {}

void Oracle::violation(const std::string& what) {
  if (violations_.size() >= kViolationsMax) return;
  char time[32];
  std::snprintf(time, sizeof time, "%.6f: ", std::chrono::duration<double>(cluster_.now()).count());
  violations_.push_back(time + what);
  cluster_.trace(nullptr, "VIOLATION " + what);
}

bool Oracle::alive(pid_t pid) {
  const sim::ProcessRecord* process = cluster_.processes().find(pid);
  return process != nullptr && process->alive;
}

void Oracle::new_launcher() {
  newest_ = 0;
  groups_.clear();
  inside_.clear();
  holders_.clear();
  finished_.clear();
  begun_ = kNoStep;
}

// ---- groups ----

void Oracle::joined(const Place& place, const Start& start, Step held) {
  if (place.epoch < newest_) {
    violation(name_of(place) + " joins an epoch older than " + std::to_string(newest_));
    return;
  }
  if (place.epoch > newest_) open_group(place, start);
  Group& group = groups_[place.epoch];
  if (const auto owner = group.owners.find(place.rank); owner != group.owners.end() && owner->second != place.pid) {
    violation(name_of(place) + " joins where process " + std::to_string(owner->second) + " is that rank");
  }
  const auto before = holders_.find(place.rank);
  if (before != holders_.end() && before->second != place.pid && alive(before->second)) {
    violation(name_of(place) + " joins while process " + std::to_string(before->second) + " lives as that rank");
  }
  if (start.step != group.start.step || start.checkpoint != group.start.checkpoint) {
    violation(name_of(place) + " was told another step or checkpoint than the rest of its group");
  }
  if (!start.checkpoint.empty() && held > start.step) {
    violation(name_of(place) + " held " + std::to_string(held) + " steps and must go back to step " +
              std::to_string(start.step));
  }
  group.owners[place.rank] = place.pid;
  holders_[place.rank] = place.pid;
  inside_[place.pid] = place;
}

void Oracle::open_group(const Place& place, const Start& start) {
  for (const auto& [pid, other] : inside_) {
    if (alive(pid))
      violation(name_of(other) + " is still in its group when epoch " + std::to_string(place.epoch) + " begins");
  }
  newest_ = place.epoch;
  groups_[place.epoch].start = start;
  finished_.clear();
  ++groups_made_;
  const auto committed = newest_committed();
  if (start.checkpoint.empty()) {
    if (start.step == 0 && done_ > 0 && (!committed || expects_damage_)) {
      ++rollbacks_;  // from the very beginning: nothing was left of it
      done_ = 0;
    }
    if (start.step < done_) {
      violation("epoch " + std::to_string(place.epoch) + " begins at step " + std::to_string(start.step) +
                " though all ranks had completed " + std::to_string(done_));
    }
    return;
  }
  ++rollbacks_;
  const auto id = store::parse_checkpoint_name(start.checkpoint.substr(start.checkpoint.find_last_of('/') + 1));
  if (!id || id->step != start.step)
    return violation("epoch " + std::to_string(place.epoch) + " begins from " + start.checkpoint);
  if (id->epoch >= place.epoch)
    violation("epoch " + std::to_string(place.epoch) + " loads a checkpoint of its own future");
  if (committed && *id < *committed && !expects_damage_) {
    violation("epoch " + std::to_string(place.epoch) + " begins from " + store::checkpoint_name(*id) + " though " +
              store::checkpoint_name(*committed) + " is committed");
  }
  done_ = start.step;
}

void Oracle::check_in_group(const Place& place, const std::string& doing) {
  const auto inside = inside_.find(place.pid);
  if (place.epoch < newest_ || inside == inside_.end() || inside->second != place) {
    violation(name_of(place) + " " + doing + " though it is not in that group (newest epoch " +
              std::to_string(newest_) + ")");
  }
}

std::string Oracle::address_of(const Place& place) {
  return std::to_string(place.epoch) + "/" + std::to_string(place.rank) + "/" + std::to_string(place.pid);
}

void Oracle::addressed(const Place& place, Rank rank, const std::string& address) {
  const Group& group = groups_[place.epoch];
  const auto owner = group.owners.find(rank);
  const pid_t pid = owner == group.owners.end() ? 0 : owner->second;
  if (address != address_of({.pid = pid, .rank = rank, .epoch = place.epoch})) {
    violation(name_of(place) + " was given the address " + address + " for rank " + std::to_string(rank));
  }
}

// ---- meetings ----

void Oracle::meet(const Place& place, const std::string& what, const std::set<Rank>& members, const State& state,
                  Callbacks callbacks) {
  check_in_group(place, "comes to \"" + what + "\"");
  Group& group = groups_[place.epoch];
  Meeting& meeting = group.meetings[what];
  meeting.members = members;
  if (meeting.there.contains(place.rank)) violation(name_of(place) + " comes to \"" + what + "\" twice");
  Attendee& attendee = meeting.there[place.rank] = {.place = place, .callbacks = std::move(callbacks), .over = false};
  meeting.states[place.rank] = state;
  const bool hopeless =
      std::any_of(members.begin(), members.end(), [&](Rank rank) { return group.cut.contains(rank); });
  if (hopeless) return break_for(attendee);
  if (meeting.there.size() == members.size()) complete(place.epoch, what, meeting);
}

void Oracle::meet_all(const Place& place, const std::string& what, const State& state, Callbacks callbacks) {
  std::set<Rank> all;
  for (Rank rank = 0; rank < world_size_; ++rank) all.insert(rank);
  for (const auto& [rank, other] : groups_[place.epoch].meetings[what].states) {
    if (other != state) {
      violation(name_of(place) + " comes to \"" + what + "\" with " + text_of(state) + ", rank " +
                std::to_string(rank) + " has " + text_of(other));
    }
  }
  meet(place, what, all, state, std::move(callbacks));
}

void Oracle::complete(Epoch epoch, const std::string& what, Meeting& meeting) {
  meeting.complete = true;
  for (auto& [member, attendee] : meeting.there) {
    world::Loop& loop = cluster_.world_of(attendee.place.pid).loop();
    loop.call_after(random_.draw(random_.chance(kLateShare) ? kLate : kSoon), [this, epoch, what, rank = member] {
      const auto group = groups_.find(epoch);
      if (group == groups_.end()) return;
      Meeting& met = group->second.meetings[what];
      Attendee& each = met.there[rank];
      if (std::exchange(each.over, true)) return;
      each.callbacks.done(met.states);
    });
  }
}

void Oracle::break_for(Attendee& attendee) {
  if (std::exchange(attendee.over, true)) return;
  cluster_.world_of(attendee.place.pid).loop().call_after(random_.draw(kBreak), attendee.callbacks.broken);
}

void Oracle::cut(const Place& place, bool in_order) {
  const auto found = groups_.find(place.epoch);
  if (found == groups_.end()) return;
  Group& group = found->second;
  if (!group.cut.insert(place.rank).second) return;
  for (auto& [what, meeting] : group.meetings) {
    if (!meeting.members.contains(place.rank)) continue;
    for (auto& [rank, attendee] : meeting.there) {
      // What has reached a member already is its own, with or without the one that broke off.
      if (rank != place.rank && (!meeting.complete || (!in_order && random_.chance(0.5)))) break_for(attendee);
    }
  }
}

void Oracle::left(const Place& place) {
  cut(place);
  const auto inside = inside_.find(place.pid);
  if (inside != inside_.end() && inside->second == place) inside_.erase(inside);
}

// ---- steps ----

void Oracle::note_applied(const Place& place, const State& state, const std::string& doing) {
  check_in_group(place, doing);
  if (state != true_state(state.applied)) {
    violation(name_of(place) + " " + doing + " and holds " + text_of(state) + " in place of hash " +
              std::to_string(true_state(state.applied).hash));
  }
  Group& group = groups_[place.epoch];
  group.applied[place.rank] = state.applied;
  if (group.applied.size() < world_size_) return;
  Step all = state.applied;
  for (const auto& [rank, applied] : group.applied) all = std::min(all, applied);
  done_ = std::max(done_, all);
}

void Oracle::restored(const Place& place, const State& state) {
  const Step wanted = groups_[place.epoch].start.step;
  if (state.applied != wanted)
    violation(name_of(place) + " restored " + text_of(state) + ", not step " + std::to_string(wanted));
  note_applied(place, state, "restores");
}

void Oracle::began(const Place& place, Step step) {
  check_in_group(place, "begins step " + std::to_string(step));
  begun_ = std::max(begun_, step);
}

void Oracle::applied(const Place& place, const State& state) {
  note_applied(place, state, "applies step " + std::to_string(state.applied - 1));
}

void Oracle::finished(const Place& place, const State& state) {
  note_applied(place, state, "is released");
  if (state.applied != steps_) violation(name_of(place) + " is released with " + text_of(state));
  finished_.insert(place.rank);
}

bool Oracle::all_finished() const { return finished_.size() == world_size_; }

// ---- checkpoints ----

std::optional<store::CheckpointId> Oracle::newest_committed() const {
  for (auto id = known_.rbegin(); id != known_.rend(); ++id) {
    if (!damaged_.contains(*id)) return *id;
  }
  return std::nullopt;
}

void Oracle::sees_committed(const std::set<store::CheckpointId>& committed) {
  const auto newest = newest_committed();
  const bool overtaken = newest && std::any_of(committed.begin(), committed.end(), [&](store::CheckpointId id) {
                           return id > *newest && !damaged_.contains(id);
                         });
  if (newest && !committed.contains(*newest) && !overtaken) {
    violation("the newest checkpoint, " + store::checkpoint_name(*newest) + ", is gone");
  }
  known_ = committed;
}

}  // namespace holdfast::trial
