// What the coordinator does as time passes: nobody is waited for without an end.
#include "run/coordinator.h"

namespace holdfast::run {

using world::Nanos;

Coordinator::Actions Coordinator::tick(Nanos now) {
  if (mode_ == Mode::Ended) return take();
  if (group_error_since_ && now - *group_error_since_ > policy_.group_error_patience) {
    recover(now, open_fault(now, FaultKind::GroupError, {}, "a collective failed", group_error_text_));
  }
  tick_fences(now);
  tick_failing(now);
  tick_gathering(now);
  return take();
}

void Coordinator::stood_still(Nanos how_long) {
  for (Slot& slot : slots_) {
    slot.since += how_long;
    if (slot.failed_at) *slot.failed_at += how_long;
  }
  for (auto& [worker, fence] : fences_) fence.since += how_long;
  if (group_error_since_) *group_error_since_ += how_long;
}

void Coordinator::tick_fences(Nanos now) {
  for (auto& [worker, fence] : fences_) {
    if (!fence.killed && now - fence.since > policy_.restart_grace) {
      fence = Fence{.since = now, .killed = true};
      actions_.push_back(EndWorker{worker, true});
    } else if (fence.killed && now - fence.since > policy_.kill_patience) {
      Fault& fault =
          open_fault(now, FaultKind::Unkillable, {}, "SIGKILL did not end worker " + std::to_string(worker), "");
      open_.erase(fault.id);
      end_run(kExitTryLater, "a process could not be killed; this machine needs a look before it runs anything again");
      return;
    }
  }
}

void Coordinator::tick_failing(Nanos now) {
  for (Rank rank = 0; rank < slots_.size(); ++rank) {
    const Slot& slot = slots_[rank];
    if (!slot.failed_at || now - *slot.failed_at <= policy_.exit_patience) continue;
    recover(now, open_fault(now, FaultKind::UserError, {rank}, "raised an error and did not end", slot.error));
    return;
  }
}

// Ranks that do not come to the meeting point are condemned, each by its own patience.
void Coordinator::tick_gathering(Nanos now) {
  if (mode_ != Mode::Starting && mode_ != Mode::Recovering && mode_ != Mode::Restoring) return;
  std::vector<Rank> late;
  bool waiting = false;
  for (Rank rank = 0; rank < slots_.size(); ++rank) {
    const Slot& slot = slots_[rank];
    waiting = waiting || slot.place == Place::Waiting || slot.place == Place::InLoop;
    const bool starts = slot.place == Place::Starting || slot.place == Place::Setup;
    const bool rejoins = slot.place == Place::Aborted || slot.place == Place::Restoring;
    if ((starts && now - slot.since > policy_.start_patience) ||
        (rejoins && now - slot.since > policy_.rejoin_patience)) {
      late.push_back(rank);
    }
  }
  // Evidence is that others wait: where nobody has come, nobody is to blame.
  if (late.empty() || !waiting) return;
  recover(now, open_fault(now, FaultKind::Hung, late, "did not come back to the group in time", ""));
}

}  // namespace holdfast::run
