#include "run/coordinator.h"

#include <algorithm>
#include <csignal>

#include "base/check.h"

namespace holdfast::run {

using world::Nanos;

Coordinator::Coordinator(CoordinatorPolicy policy, RunFacts facts)
    : policy_(policy), facts_(std::move(facts)), slots_(policy.world_size) {
  CHECK(policy.world_size >= 1);
}

Coordinator::Actions Coordinator::take() {
  Actions taken;
  taken.swap(actions_);
  return taken;
}

Coordinator::Actions Coordinator::start(Nanos now, Epoch before) {
  epoch_ = before;
  enter(Mode::Starting);
  spawn_all(now);
  return take();
}

void Coordinator::spawn_all(Nanos now) {
  epoch_ += 1;
  actions_.push_back(OpenEpoch{epoch_});
  for (Rank rank = 0; rank < policy_.world_size; ++rank) {
    const WorkerId worker = next_worker_++;
    slots_[rank] = Slot{.worker = worker, .place = Place::Starting, .since = now};
    actions_.push_back(SpawnRank{worker, rank, false, restarts_});
  }
}

Coordinator::Actions Coordinator::on_message(Nanos now, WorkerId worker, const Message& message) {
  if (mode_ != Mode::Ended && !fences_.contains(worker)) {
    std::visit([&](const auto& body) { handle(now, worker, body); }, message);
  }
  return take();
}

void Coordinator::handle(Nanos now, WorkerId worker, const Attach&) {
  Slot* slot = slot_of(worker);
  if (slot == nullptr || slot->place != Place::Starting) return;
  slot->place = Place::Setup;
  slot->since = now;
  const auto rank = static_cast<Rank>(slot - slots_.data());
  Assign assign{.rank = rank,
                .local_rank = rank,
                .world_size = policy_.world_size,
                .epoch = epoch_,
                .replacement = slot->replacement,
                .run_id = facts_.run_id,
                .seed = facts_.seed,
                .ckpt_dir = facts_.ckpt_dir,
                .ckpt_every_steps = facts_.ckpt_every_steps};
  actions_.push_back(SendTo{worker, std::move(assign)});
  api_ = true;
}

void Coordinator::handle(Nanos now, WorkerId worker, const Park&) {
  auto spare = spares_.find(worker);
  if (spare == spares_.end()) return;
  spare->second.parked = true;
  for (Rank rank = 0; rank < slots_.size(); ++rank) {
    if (slots_[rank].place == Place::Empty && mode_ == Mode::Recovering) {
      replace(now, rank);
      return;
    }
  }
}

void Coordinator::handle(Nanos now, WorkerId worker, const Ready& ready) {
  Slot* slot = slot_of(worker);
  if (slot == nullptr || ready.round <= rounds_[worker]) return;
  rounds_[worker] = ready.round;
  const bool expected = slot->place == Place::Setup || slot->place == Place::Aborted;
  if (!expected) {
    // It fell out of a group that we thought whole; the fault that explains it may be on its way.
    if (slot->place != Place::InLoop && slot->place != Place::Restoring) return;
    if (!group_error_since_) group_error_since_ = now;
    group_error_text_ = "rank " + std::to_string(slot - slots_.data()) + " fell out of its group";
  }
  slot->place = Place::Waiting;
  slot->applied = ready.applied;
  slot->since = now;
  try_regroup(now);
}

void Coordinator::handle(Nanos now, WorkerId worker, const Restored& restored) {
  Slot* slot = slot_of(worker);
  if (slot == nullptr || slot->place != Place::Restoring || restored.epoch != epoch_) return;
  slot->place = Place::InLoop;
  slot->replacement = false;
  slot->since = now;
  // A rank that was heard late may be the last in the loop when others are through it.
  const auto came = [](const Slot& each) { return each.place == Place::InLoop || each.place == Place::Finished; };
  if (!std::all_of(slots_.begin(), slots_.end(), came)) return;
  close_open_faults(now, &Fault::restored_at);
  enter(Mode::Running);
}

void Coordinator::handle(Nanos now, WorkerId worker, const GroupError& error) {
  Slot* slot = slot_of(worker);
  if (slot == nullptr) return;
  actions_.push_back(SendTo{worker, Verdict{.epoch = error.epoch, .recover = true}});
  if (error.epoch != epoch_ || mode_ == Mode::Recovering || group_error_since_) return;
  group_error_since_ = now;
  group_error_text_ = "rank " + std::to_string(slot - slots_.data()) + ": " + error.text;
}

void Coordinator::handle(Nanos now, WorkerId worker, const Finished& finished) {
  Slot* slot = slot_of(worker);
  if (slot == nullptr || slot->place != Place::InLoop || finished.epoch != epoch_) return;
  slot->place = Place::Finished;
  slot->since = now;
  if (!all(Place::Finished)) return;
  enter(Mode::After);
  stop_code_.reset();  // the work was done before the stop came into force
  for (Slot& each : slots_) {
    each.place = Place::After;
    actions_.push_back(SendTo{each.worker, Release{}});
  }
}

void Coordinator::handle(Nanos now, WorkerId worker, const Failed& failed) {
  Slot* slot = slot_of(worker);
  if (slot == nullptr || slot->failed_at) return;
  slot->failed_at = now;
  slot->error = failed.text;
}

Coordinator::Actions Coordinator::on_exit(Nanos now, WorkerId worker, world::ExitStatus status,
                                          const std::string& error) {
  if (mode_ == Mode::Ended) return take();
  rounds_.erase(worker);
  if (fences_.erase(worker) > 0) {
    if (mode_ == Mode::Restarting && fences_.empty()) {
      enter(Mode::Starting);
      spawn_all(now);
    } else {
      try_regroup(now);
    }
    return take();
  }
  if (spares_.erase(worker) > 0) return take();  // replaced by the next fill_spares
  Slot* slot = slot_of(worker);
  if (slot == nullptr) return take();
  const auto rank = static_cast<Rank>(slot - slots_.data());
  const bool clean = status == world::ExitStatus{};
  const bool before_loop = mode_ == Mode::Starting && slot->place != Place::Waiting;
  if (stop_code_ || (clean && (before_loop || mode_ == Mode::After))) {
    slot->place = Place::Left;
    slot->worker = 0;
    if (all(Place::Left)) end_run(stop_code_.value_or(kExitDone), stop_code_ ? "stopped as asked" : "done");
    end_if_some_left_early();
    return take();
  }
  const std::string why = error.empty() ? slot->error : error;
  slot->worker = 0;
  std::string seen = status.signal != 0 ? "ended by signal " + std::to_string(status.signal)
                                        : "exited with code " + std::to_string(status.code);
  if (clean) seen += " inside the step loop";
  FaultKind kind = FaultKind::Crashed;
  if (status.signal == SIGKILL) kind = FaultKind::Killed;
  if (status.signal == 0 && !why.empty()) kind = FaultKind::UserError;
  recover(now, open_fault(now, kind, {rank}, seen, why));
  return take();
}

Coordinator::Actions Coordinator::condemn(Nanos now, FaultKind kind, const std::vector<Rank>& culprits,
                                          const std::string& seen, const std::string& evidence) {
  if (mode_ == Mode::Ended || mode_ == Mode::Restarting) return take();
  std::vector<Rank> present;
  std::copy_if(culprits.begin(), culprits.end(), std::back_inserter(present),
               [&](Rank rank) { return slots_[rank].worker != 0; });
  if (!present.empty()) recover(now, open_fault(now, kind, present, seen, evidence));
  return take();
}

Coordinator::Actions Coordinator::record(Nanos now, FaultKind kind, const std::vector<Rank>& culprits,
                                         const std::string& seen, const std::string& evidence) {
  const int id = open_fault(now, kind, culprits, seen, evidence).id;
  open_.erase(id);
  actions_.push_back(FaultClosed{id});
  return take();
}

Fault& Coordinator::open_fault(Nanos now, FaultKind kind, const std::vector<Rank>& culprits, const std::string& seen,
                               const std::string& evidence) {
  const int id = static_cast<int>(faults_.size());
  Fault fault;
  fault.id = id;
  fault.kind = kind;
  fault.culprits = culprits;
  fault.step = best_begun_;
  fault.epoch = epoch_;
  fault.seen = seen;
  fault.evidence = evidence;
  fault.seen_at = now;
  faults_.push_back(std::move(fault));
  open_.insert(id);
  actions_.push_back(FaultOpened{id});
  return faults_.back();
}

void Coordinator::recover(Nanos now, const Fault& fault) {
  const std::vector<Rank> culprits = fault.culprits;
  if (stop_code_) {
    group_error_since_.reset();  // told once of those that have left the group; the grace is the bound
    for (Rank rank : culprits) {
      if (slots_[rank].worker != 0) end_worker(now, slots_[rank].worker, true);
      slots_[rank] = Slot{.place = Place::Left};
    }
    if (all(Place::Left)) end_run(*stop_code_, "stopped as asked");
    return;
  }
  if (api_ && fault.kind == FaultKind::UserError && repeated_user_error(fault)) {
    end_run(kExitFailed, "rank " + std::to_string(culprits.front()) + " raised the same error twice without progress");
    return;
  }
  if (recoverable_in_place(culprits)) {
    faults_[static_cast<std::size_t>(fault.id)].in_place = true;
    recover_in_place(now, culprits, std::string(fault_word(fault.kind)) + ": " + fault.seen);
  } else {
    restart_all(now, culprits);
  }
}

bool Coordinator::repeated_user_error(const Fault& fault) {
  const bool same = fault.evidence == last_user_error_ && best_done_ == last_user_error_best_;
  last_user_error_ = fault.evidence;
  last_user_error_best_ = best_done_;
  return same;
}

bool Coordinator::recoverable_in_place(const std::vector<Rank>& culprits) const {
  if (!api_ || mode_ == Mode::Starting || mode_ == Mode::After || mode_ == Mode::Restarting) return false;
  bool survivor = false;
  for (Rank rank = 0; rank < slots_.size(); ++rank) {
    const Slot& slot = slots_[rank];
    if (std::find(culprits.begin(), culprits.end(), rank) != culprits.end()) continue;
    if (slot.place == Place::After || slot.place == Place::Left) return false;
    if (slot.place == Place::Empty || slot.place == Place::Starting || slot.place == Place::Setup) continue;
    survivor = true;
  }
  return survivor;
}

void Coordinator::recover_in_place(Nanos now, const std::vector<Rank>& culprits, const std::string& reason) {
  lost_replacement_counts(culprits);
  if (mode_ == Mode::Ended) return;
  group_error_since_.reset();
  actions_.push_back(OpenEpoch{epoch_ + 1});
  for (Rank rank = 0; rank < slots_.size(); ++rank) {
    Slot& slot = slots_[rank];
    if (std::find(culprits.begin(), culprits.end(), rank) != culprits.end()) {
      if (slot.worker != 0) end_worker(now, slot.worker, true);
      slot = Slot{.place = Place::Empty, .since = now};
      continue;
    }
    if (slot.place == Place::InLoop || slot.place == Place::Restoring || slot.place == Place::Finished) {
      slot.place = Place::Aborted;
      slot.since = now;
    }
    if (slot.worker != 0) actions_.push_back(SendTo{slot.worker, Abort{.epoch = epoch_, .reason = reason}});
  }
  epoch_ += 1;
  enter(Mode::Recovering);
  for (Rank rank : culprits) replace(now, rank);
  if (fences_.empty()) close_open_faults(now, &Fault::fenced_at);
  try_regroup(now);
}

// A replacement that dies before it joins is a try of its own, or a broken script would be respawned for ever.
void Coordinator::lost_replacement_counts(const std::vector<Rank>& culprits) {
  const bool lost = std::any_of(culprits.begin(), culprits.end(), [&](Rank rank) { return slots_[rank].replacement; });
  if (lost && mode_ == Mode::Recovering) count_try("replacements died before they joined");
}

void Coordinator::replace(Nanos now, Rank rank) {
  const auto parked =
      std::find_if(spares_.begin(), spares_.end(), [](const auto& spare) { return spare.second.parked; });
  WorkerId worker = 0;
  if (parked != spares_.end()) {
    worker = parked->first;
    spares_.erase(parked);
    actions_.push_back(PromoteSpare{worker, rank});
  } else {
    worker = next_worker_++;
    actions_.push_back(SpawnRank{worker, rank, true, restarts_});
  }
  slots_[rank] = Slot{.worker = worker, .place = Place::Starting, .replacement = true, .since = now};
}

void Coordinator::fill_spares() {
  while (api_ && spares_.size() < policy_.spares) {
    const WorkerId worker = next_worker_++;
    spares_[worker] = Spare{};
    actions_.push_back(SpawnSpare{worker});
  }
}

void Coordinator::end_worker(Nanos now, WorkerId worker, bool kill) {
  fences_[worker] = Fence{.since = now, .killed = kill};
  actions_.push_back(EndWorker{worker, kill});
}

void Coordinator::restart_all(Nanos now, const std::vector<Rank>& culprits) {
  group_error_since_.reset();
  if (restarts_ >= policy_.max_restarts) {
    end_run(api_ ? kExitDoNotRequeue : kExitFailed,
            "restarted " + std::to_string(restarts_) + " times, the most that --max-restarts allows");
    return;
  }
  if (api_ && !count_try("restarts")) return;
  restarts_ += 1;
  enter(Mode::Restarting);
  for (Rank rank = 0; rank < slots_.size(); ++rank) {
    Slot& slot = slots_[rank];
    const bool culprit = std::find(culprits.begin(), culprits.end(), rank) != culprits.end();
    if (slot.worker != 0) end_worker(now, slot.worker, api_ || culprit);
    slot = Slot{};
  }
  if (fences_.empty()) {
    enter(Mode::Starting);
    spawn_all(now);
  }
}

void Coordinator::try_regroup(Nanos now) {
  if (!fences_.empty() || finding_checkpoint_) return;
  if (mode_ == Mode::Recovering) close_open_faults(now, &Fault::fenced_at);
  end_if_some_left_early();
  if ((mode_ != Mode::Starting && mode_ != Mode::Recovering) || !all(Place::Waiting)) return;
  Step furthest = kNoStep;
  for (const Slot& slot : slots_) furthest = std::max(furthest, slot.applied);
  // States behind the checkpoint that all were to load were never replaced by it: it is ahead of them.
  if (mode_ == Mode::Recovering && furthest != kNoStep && furthest >= loaded_) {
    send_regroup(now, furthest, "");
    return;
  }
  finding_checkpoint_ = true;
  actions_.push_back(FindCheckpoint{});
}

Coordinator::Actions Coordinator::on_checkpoint(Nanos now, Step step, const std::string& directory) {
  finding_checkpoint_ = false;
  if ((mode_ != Mode::Starting && mode_ != Mode::Recovering) || !all(Place::Waiting) || !fences_.empty()) {
    try_regroup(now);
    return take();
  }
  if (step != kNoStep) {
    send_regroup(now, step, directory);
  } else if (mode_ == Mode::Starting) {
    send_regroup(now, 0, "");
  } else {
    restart_all(now, {});  // no rank holds a usable state and neither does the disk: begin again
  }
  return take();
}

void Coordinator::send_regroup(Nanos now, Step step, const std::string& checkpoint) {
  if (mode_ == Mode::Recovering && !count_try("recoveries")) return;
  if (!checkpoint.empty() || mode_ == Mode::Starting) loaded_ = step;
  Regroup regroup{.epoch = epoch_, .step = step, .copies = {}, .checkpoint = checkpoint};
  std::vector<Rank> sources;
  for (Rank rank = 0; rank < slots_.size(); ++rank) {
    if (slots_[rank].applied == step) sources.push_back(rank);
  }
  std::size_t next = 0;
  for (Rank rank = 0; checkpoint.empty() && !sources.empty() && rank < slots_.size(); ++rank) {
    if (slots_[rank].applied == step) continue;
    regroup.copies.emplace_back(sources[next++ % sources.size()], rank);
  }
  close_open_faults(now, &Fault::regrouped_at);
  enter(Mode::Restoring);
  for (Slot& slot : slots_) {
    slot.place = Place::Restoring;
    slot.since = now;
    actions_.push_back(SendTo{slot.worker, regroup});
  }
}

bool Coordinator::count_try(const std::string& what) {
  tries_ += 1;
  if (tries_ <= policy_.tries_without_progress) return true;
  end_run(kExitDoNotRequeue, "no progress: " + std::to_string(policy_.tries_without_progress) + " " + what +
                                 " in a row without a new completed step (the last was step " +
                                 std::to_string(best_done_) + ")");
  return false;
}

void Coordinator::on_step_begun(Step step) { best_begun_ = std::max(best_begun_, step); }

Coordinator::Actions Coordinator::on_step_done(Nanos at, Step step) {
  if (mode_ != Mode::Running) return take();
  for (auto fault = open_.begin(); fault != open_.end();) {
    Fault& each = faults_[static_cast<std::size_t>(*fault)];
    if (!each.restored_at || at < *each.restored_at) {
      ++fault;
      continue;
    }
    each.first_step_at = at;
    actions_.push_back(FaultClosed{*fault});
    fault = open_.erase(fault);
  }
  if (step > best_done_) {
    best_done_ = step;
    tries_ = 0;
  }
  fill_spares();
  return take();
}

void Coordinator::close_open_faults(Nanos now, std::optional<Nanos> Fault::* phase) {
  for (int id : open_) {
    std::optional<Nanos>& at = faults_[static_cast<std::size_t>(id)].*phase;
    if (!at) at = now;
  }
}

void Coordinator::set_rejoin_patience(Nanos patience) { policy_.rejoin_patience = patience; }

// Once the work is done there is nothing left to stop.
void Coordinator::stop(int exit_code) {
  if (mode_ != Mode::After) stop_code_ = exit_code;
}

std::optional<WorkerId> Coordinator::worker_of(Rank rank) const {
  if (rank >= slots_.size() || slots_[rank].worker == 0) return std::nullopt;
  return slots_[rank].worker;
}

std::optional<Rank> Coordinator::rank_of(WorkerId worker) const {
  for (Rank rank = 0; rank < slots_.size(); ++rank) {
    if (worker != 0 && slots_[rank].worker == worker) return rank;
  }
  return std::nullopt;
}

// Ranks that meet before the loop would wait for ever for one that left without an error.
void Coordinator::end_if_some_left_early() {
  if (mode_ != Mode::Starting || stop_code_) return;
  const auto count = [&](Place place) {
    return std::count_if(slots_.begin(), slots_.end(), [&](const Slot& slot) { return slot.place == place; });
  };
  const auto left = count(Place::Left);
  if (left == 0 || count(Place::Waiting) + left < static_cast<std::ptrdiff_t>(slots_.size())) return;
  if (left == static_cast<std::ptrdiff_t>(slots_.size())) return;
  end_run(kExitFailed, std::to_string(left) + " ranks ended before the step loop in which the others wait for them");
}

Coordinator::Slot* Coordinator::slot_of(WorkerId worker) {
  const std::optional<Rank> rank = rank_of(worker);
  return rank ? &slots_[*rank] : nullptr;
}

bool Coordinator::all(Place place) const {
  return std::all_of(slots_.begin(), slots_.end(), [&](const Slot& slot) { return slot.place == place; });
}

void Coordinator::enter(Mode mode) {
  mode_ = mode;
  actions_.push_back(EnterMode{mode});
}

void Coordinator::end_run(int exit_code, const std::string& why) {
  if (mode_ == Mode::Ended) return;
  enter(Mode::Ended);
  actions_.push_back(EndRun{exit_code, why});
}

}  // namespace holdfast::run
