// What a training run must never do, and the network between its ranks. In a simulated run the ranks' collectives and
// copies of state go through one Oracle: they complete for each member on its own, or break, and it sees all that every
// rank does.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/sim_world.h"
#include "store/checkpoint_id.h"

namespace holdfast::trial {

using world::Nanos;

/// A model, its optimizer and all the rest, as small as can be.
struct State {
  Step applied = 0;
  std::uint64_t hash = 0;
  friend bool operator==(const State&, const State&) = default;
};
State first_state();
/// One step later. Differs for every step and every state before it.
State after_step(State state, Step step);
/// What a state must be that has applied so many steps, each once, in order.
State true_state(Step applied);

/// A process that takes part in the group of an epoch.
struct Place {
  pid_t pid = 0;
  Rank rank = 0;
  Epoch epoch = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

/// How a rank was told to go on.
struct Start {
  Step step = 0;
  std::string checkpoint;  ///< "": the state comes from the ranks
};

class Oracle {
 public:
  /// `cluster` outlives the calls, not this object.
  Oracle(sim::Cluster& cluster, std::uint32_t world_size, Step steps);

  // ---- what ranks do ----

  /// `held`: steps that its state had applied, kNoStep without one.
  void joined(const Place& place, const Start& start, Step held);
  /// The address that the epoch's store gave for `rank`.
  void addressed(const Place& place, Rank rank, const std::string& address);
  static std::string address_of(const Place& place);

  struct Callbacks {
    std::function<void(const std::map<Rank, State>&)> done;
    std::function<void()> broken;
  };
  /// Each of `members` comes once, with its state. When all are there, each hears of it some time later, on its own
  /// loop; where one breaks off before that, it may hear of that instead.
  void meet(const Place& place, const std::string& what, const std::set<Rank>& members, const State& state,
            Callbacks callbacks);
  /// The whole group meets; all must hold the same state.
  void meet_all(const Place& place, const std::string& what, const State& state, Callbacks callbacks);

  void restored(const Place& place, const State& state);
  void began(const Place& place, Step step);
  void applied(const Place& place, const State& state);
  void finished(const Place& place, const State& state);
  /// Its sockets are shut: the group feels it. `in_order`: by an exit that has nothing left to send, so what was
  /// complete reaches everybody.
  void cut(const Place& place, bool in_order = false);
  /// It does nothing more in that epoch.
  void left(const Place& place);

  // ---- what the test sees and does ----

  void new_launcher();
  /// The checkpoints that are whole now, by what lies on the disk.
  void sees_committed(const std::set<store::CheckpointId>& committed);
  const std::set<store::CheckpointId>& committed() const { return known_; }
  /// The test has damaged it: it need not last.
  void damage(store::CheckpointId id) { damaged_.insert(id); }
  /// Somebody else damages checkpoints: that the newest is passed over proves nothing.
  void expects_damage() { expects_damage_ = true; }
  void violation(const std::string& what);

  const std::vector<std::string>& violations() const { return violations_; }
  /// Newest step that a rank has begun.
  Step begun() const { return begun_; }
  /// Steps that all ranks have behind them.
  Step done() const { return done_; }
  bool all_finished() const;
  /// Recoveries that needed no checkpoint, and those that did.
  int groups_made() const { return groups_made_; }
  int rollbacks() const { return rollbacks_; }
  /// Newest checkpoint that must last; none before the first.
  std::optional<store::CheckpointId> newest_committed() const;
  const std::set<store::CheckpointId>& damaged() const { return damaged_; }
  /// The process that joined last as each rank, dead or alive.
  const std::map<Rank, pid_t>& ranks() const { return holders_; }

 private:
  struct Attendee {
    Place place;
    Callbacks callbacks;
    bool over = false;
  };
  struct Meeting {
    std::set<Rank> members;
    std::map<Rank, Attendee> there;
    std::map<Rank, State> states;
    bool complete = false;
  };
  struct Group {
    Start start;
    std::map<Rank, pid_t> owners;
    std::set<Rank> cut;
    std::map<Rank, Step> applied;
    std::map<std::string, Meeting> meetings;
  };

  bool alive(pid_t pid);
  void check_in_group(const Place& place, const std::string& doing);
  void open_group(const Place& place, const Start& start);
  void note_applied(const Place& place, const State& state, const std::string& doing);
  void complete(Epoch epoch, const std::string& what, Meeting& meeting);
  void break_for(Attendee& attendee);

  sim::Cluster& cluster_;
  sim::SimRandom random_;
  std::uint32_t world_size_;
  Step steps_;
  Epoch newest_ = 0;
  std::map<Epoch, Group> groups_;
  std::map<pid_t, Place> inside_;        // processes that are in a group now
  std::map<Rank, pid_t> holders_;        // who joined last as this rank
  std::set<Rank> finished_;              // in the newest group
  std::set<store::CheckpointId> known_;  // seen whole on disk
  std::set<store::CheckpointId> damaged_;
  bool expects_damage_ = false;
  Step begun_ = kNoStep;
  Step done_ = 0;
  int groups_made_ = 0;
  int rollbacks_ = 0;
  std::vector<std::string> violations_;
};

}  // namespace holdfast::trial
