// Closures live in slots that are used again; the queue holds times and slot numbers only. A cancelled event leaves
// its entry in the queue and is passed over there by its generation.
#include "sim/schedule.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "sim/random.h"

namespace holdfast::sim {

namespace {

/// Not zero: code that takes 0 for "never" shall be found out.
constexpr Nanos kStart = std::chrono::seconds(1000);

TimerId make_id(std::size_t slot, std::uint32_t generation) {
  return (static_cast<TimerId>(generation) << 32U) | static_cast<TimerId>(slot);
}
std::size_t slot_of(TimerId id) { return static_cast<std::size_t>(id & 0xffffffffU); }
std::uint32_t generation_of(TimerId id) { return static_cast<std::uint32_t>(id >> 32U); }

}  // namespace

Schedule::Schedule() : now_(kStart), owners_(1) {}

Owner Schedule::add_owner() {
  owners_.emplace_back();
  return static_cast<Owner>(owners_.size() - 1);
}

TimerId Schedule::at(Nanos when, Owner owner, std::function<void()> fn) {
  if (owners_.at(owner).gate == Gate::Gone) return world::kNoTimer;
  std::size_t slot = slots_.size();
  if (free_.empty()) {
    slots_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  slots_[slot].fn = std::move(fn);
  slots_[slot].owner = owner;
  slots_[slot].used = true;
  const TimerId id = make_id(slot, slots_[slot].generation);
  queue_.push({std::max(when, now_), order_++, id});
  return id;
}

Schedule::Slot* Schedule::find(TimerId id) {
  const std::size_t slot = slot_of(id);
  if (slot >= slots_.size() || !slots_[slot].used || slots_[slot].generation != generation_of(id)) return nullptr;
  return &slots_[slot];
}

std::function<void()> Schedule::take(Slot& slot) {
  auto fn = std::move(slot.fn);
  slot.fn = nullptr;
  slot.used = false;
  ++slot.generation;
  free_.push_back(static_cast<std::uint32_t>(&slot - slots_.data()));
  return fn;
}

void Schedule::cancel(TimerId id) {
  Slot* slot = find(id);
  // The closure is destroyed after the slot is free: its destructor may schedule or cancel.
  if (slot != nullptr) const auto destroyed_here = take(*slot);
}

void Schedule::hold(Owner owner) {
  if (owners_.at(owner).gate == Gate::Open) owners_[owner].gate = Gate::Held;
}

void Schedule::release(Owner owner) {
  if (owners_.at(owner).gate != Gate::Held) return;
  owners_[owner].gate = Gate::Open;
  for (const Due& due : std::exchange(owners_[owner].waiting, {})) queue_.push(due);  // each in its old place
}

void Schedule::silence(Owner owner) {
  CHECK(owner != kNobody);
  owners_.at(owner).gate = Gate::Gone;
  owners_[owner].waiting.clear();
}

void Schedule::drop(Owner owner) {
  silence(owner);
  std::vector<std::function<void()>> destroyed_last;
  for (Slot& slot : slots_) {
    if (slot.used && slot.owner == owner) destroyed_last.push_back(take(slot));
  }
}

void Schedule::drop_all() {
  std::vector<std::function<void()>> destroyed_last;
  for (Slot& slot : slots_) {
    if (slot.used) destroyed_last.push_back(take(slot));
  }
  queue_ = {};
}

bool Schedule::run_next(Nanos limit) {
  while (!queue_.empty() && queue_.top().when <= limit) {
    const Due due = queue_.top();
    queue_.pop();
    Slot* slot = find(due.id);
    if (slot == nullptr) continue;
    OwnerState& owner = owners_[slot->owner];
    if (owner.gate == Gate::Gone) continue;
    if (owner.gate == Gate::Held) {
      owner.waiting.push_back(due);
      continue;
    }
    now_ = std::max(now_, due.when);
    ++events_run_;
    fold(static_cast<std::uint64_t>(now_.count()) ^ (static_cast<std::uint64_t>(slot->owner) << 48U));
    const auto fn = take(*slot);
    fn();
    return true;
  }
  now_ = std::max(now_, limit);
  return false;
}

void Schedule::fold(std::uint64_t fact) { hash_ = mix(hash_ * 31 + fact); }

}  // namespace holdfast::sim
