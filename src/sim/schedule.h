// The heart of the simulation: events in order of time, one at a time, each belonging to a process or to nobody.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "world/clock.h"
#include "world/loop.h"

namespace holdfast::sim {

using world::Nanos;
using world::TimerId;

/// Whose event it is. A process gets one; a process that comes back after a crash gets a new one.
using Owner = std::uint32_t;
/// The simulation's own events: never held, never dropped.
constexpr Owner kNobody = 0;

class Schedule {
 public:
  Schedule();
  Nanos now() const { return now_; }
  Owner add_owner();
  /// Runs `fn` at `when` (now at the earliest), after what was scheduled for that moment before. Events of an owner
  /// who is gone are not taken: kNoTimer.
  TimerId at(Nanos when, Owner owner, std::function<void()> fn);
  void cancel(TimerId id);
  /// Events of a held owner wait; `release` lets those that are due run now, in their order.
  void hold(Owner owner);
  void release(Owner owner);
  /// From now on no event of `owner` runs. `drop` also destroys their closures, so don't call it from one of them.
  void silence(Owner owner);
  void drop(Owner owner);
  void drop_all();
  /// Runs the next event that is due by `limit`. False: there is none, and the time is `limit`.
  bool run_next(Nanos limit);
  /// Nothing is left to run, apart from events of held owners.
  bool idle() const { return queue_.empty(); }
  /// When the next event is due, where not `idle`.
  Nanos next_time() const { return queue_.top().when; }

  /// Folds a fact into the trace hash. Two runs with the same hash went the same way.
  void fold(std::uint64_t fact);
  std::uint64_t trace_hash() const { return hash_; }
  std::uint64_t events_run() const { return events_run_; }

 private:
  struct Slot {
    std::function<void()> fn;
    Owner owner = kNobody;
    std::uint32_t generation = 1;
    bool used = false;
  };
  struct Due {
    Nanos when;
    std::uint64_t order;
    TimerId id;
    bool operator>(const Due& other) const { return when != other.when ? when > other.when : order > other.order; }
  };
  enum class Gate : std::uint8_t { Open, Held, Gone };
  struct OwnerState {
    Gate gate = Gate::Open;
    std::vector<Due> waiting;
  };

  Slot* find(TimerId id);
  std::function<void()> take(Slot& slot);

  Nanos now_;
  std::uint64_t order_ = 0;
  std::uint64_t hash_ = 0;
  std::uint64_t events_run_ = 0;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::vector<OwnerState> owners_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> queue_;
};

}  // namespace holdfast::sim
