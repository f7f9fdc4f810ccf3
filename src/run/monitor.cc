#include "run/monitor.h"

#include <algorithm>

#include "base/log.h"

namespace holdfast::run {

using telemetry::Event;
using telemetry::Mark;
using telemetry::Phase;
using world::Nanos;

namespace {
constexpr Nanos kProbeEvery = std::chrono::milliseconds(250);
constexpr Nanos kExitPatience = std::chrono::seconds(20);
constexpr std::size_t kTimingSteps = 16;
constexpr int kAllSilentFactor = 3;

// Nobody's heart beats. It was not we who stood still, or their silence would count from then.
bool all_silent(const std::vector<telemetry::RankView>& views, Nanos bound) {
  return std::all_of(views.begin(), views.end(), [&](const telemetry::RankView& view) {
    return view.heartbeat_age && *view.heartbeat_age > bound;
  });
}

telemetry::HangVerdict all_stand_still(const std::vector<telemetry::RankView>& views) {
  telemetry::HangVerdict verdict;
  verdict.kind = telemetry::HangVerdict::Kind::Condemn;
  for (const telemetry::RankView& view : views) verdict.ranks.push_back(view.rank);
  verdict.word = "hung";
  verdict.text = "no rank's heartbeat has come for " + telemetry::seconds_text(*views.front().heartbeat_age);
  return verdict;
}
}  // namespace

Monitor::Monitor(world::World& world, const RunOptions& options, Workers& workers, const Coordinator& coordinator,
                 MonitorEvents events)
    : world_(world),
      options_(options),
      workers_(workers),
      coordinator_(coordinator),
      events_(std::move(events)),
      deadlines_(options.deadlines),
      ranks_(options.policy.world_size) {}

void Monitor::poll() {
  std::vector<Event> events;
  for (Rank rank = 0; rank < ranks_.size(); ++rank) {
    const std::optional<WorkerId> id = coordinator_.worker_of(rank);
    Workers::Worker* worker = id ? workers_.find(*id) : nullptr;
    if (worker == nullptr || !worker->ring) continue;
    events.clear();
    worker->ring->poll(events);
    for (const Event& event : events) on_event(rank, event);
  }
  report_steps_done();
}

void Monitor::on_event(Rank rank, const Event& event) {
  RankState& state = ranks_[rank];
  const Nanos at(event.time_ns);
  if (event.mark == Mark::StepBegin) {
    state.step_began_at = at;
    state.probe.reset();
  } else if (event.mark == Mark::GradsReady && state.step_began_at) {
    timings_.push_back({.rank = rank, .step = event.step, .compute = at - *state.step_began_at});
  } else if (event.mark == Mark::StepEnd) {
    on_step_end(state, event);
  }
  if (event.phase != state.phase) {
    const bool timed =
        state.phase == Phase::Evaluate || state.phase == Phase::Checkpoint || state.phase == Phase::Between;
    if (timed && state.phase_began_at) deadlines_.observe(state.phase, event.step, at - *state.phase_began_at);
    state.phase = event.phase;
    state.phase_began_at = at;
  }
  events_.on_mark(rank, event);
}

void Monitor::on_step_end(RankState& state, const Event& event) {
  if (!state.step_began_at) return;
  const Nanos took = Nanos(event.time_ns) - *state.step_began_at;
  if (state.first_step) {
    deadlines_.observe_first_step(took);
  } else {
    deadlines_.observe(Phase::Train, event.step, took);
  }
  state.first_step = false;
  state.step_began_at.reset();
  // A rank may be through a step before the news has come that all are in the loop.
  const bool in_group = coordinator_.mode() == Mode::Running || coordinator_.mode() == Mode::Restoring;
  if (!in_group || event.step < first_step_) return;
  state.done = std::max(state.done, event.step);
  state.done_at = Nanos(event.time_ns);
}

void Monitor::report_steps_done() {
  if (coordinator_.mode() != Mode::Running) return;
  Step done = ranks_.front().done;
  Nanos at{};
  for (const RankState& state : ranks_) {
    done = std::min(done, state.done);
    at = std::max(at, state.done_at.value_or(Nanos{}));
  }
  while (all_done_ < done) {
    all_done_ += 1;
    events_.on_step_done(all_done_, at);
    judge_speed(all_done_);
  }
}

void Monitor::regrouped(Step step) {
  poll();
  first_step_ = step;
  all_done_ = step - 1;
  timings_.clear();
  for (RankState& state : ranks_) {
    state.done = step - 1;
    state.first_step = true;
    state.step_began_at.reset();
    state.probe.reset();
    state.slow_at.reset();
  }
}

void Monitor::judge_speed(Step step) {
  std::erase_if(timings_, [&](const telemetry::StepTiming& timing) {
    return timing.step + static_cast<Step>(kTimingSteps) <= step || timing.step <= first_step_;
  });
  const auto slow = telemetry::slow_ranks(timings_, options_.straggler);
  if (slow.empty()) return;
  timings_.clear();
  // One story while it lasts; told again once the rank was fine in between.
  std::optional<Step>& last = ranks_[slow.front().rank].slow_at;
  const bool known = last && step - *last <= static_cast<Step>(4 * options_.straggler.window);
  last = step;
  if (!known) events_.on_slow(slow.front());
}

telemetry::RankView Monitor::view_of(Rank rank, WorkerId id, Nanos now) {
  const RankState& state = ranks_[rank];
  telemetry::RankView view;
  view.rank = rank;
  view.exiting = !coordinator_.uses_api() || coordinator_.failing(rank);
  view.waits = coordinator_.waits(rank);
  view.first_step = state.first_step;
  Workers::Worker* worker = workers_.find(id);
  if (worker == nullptr) return view;
  view.in_phase_for = now - worker->spawned_at;
  if (worker->stopped_at) view.stopped_for = now - *worker->stopped_at;
  // A process that has hung up is on its way out, and tells so by its exit.
  const bool leaving = worker->hung_up_at && (coordinator_.leaving() || now - *worker->hung_up_at < kExitPatience);
  if (worker->heard_at && !leaving) view.heartbeat_age = now - std::max(*worker->heard_at, awake_since_);
  if (const auto status = worker->ring ? worker->ring->status() : std::nullopt) {
    view.phase = status->phase;
    view.step = status->step;
    view.in_phase_for = now - Nanos(status->since_ns);
  }
  if (state.probe) {
    const ProbeState& probe = *state.probe;
    view.probe =
        telemetry::Probe{.answered = probe.answered_at.has_value(),
                         .waiting_for = now - probe.sent_at,
                         .age = now - probe.answered_at.value_or(now),
                         .sequence = static_cast<std::uint64_t>(std::max<std::int64_t>(probe.reply.sequence, 0)),
                         .stack = probe.reply.stack};
  }
  return view;
}

void Monitor::stood_still() { awake_since_ = world_.clock().steady(); }

void Monitor::judge() {
  const Nanos now = world_.clock().steady();
  std::vector<telemetry::RankView> views;
  for (Rank rank = 0; rank < ranks_.size(); ++rank) {
    const std::optional<WorkerId> id = coordinator_.worker_of(rank);
    if (!id) continue;
    telemetry::RankView view = view_of(rank, *id, now);
    // Outside the loop the coordinator's own patience counts; here only what shows in the process itself.
    if (coordinator_.mode() != Mode::Running) view.exiting = true;
    views.push_back(std::move(view));
  }
  if (views.empty()) return;
  telemetry::HangVerdict verdict = telemetry::judge_hang(views, deadlines_.hang_policy());
  if (all_silent(views, kAllSilentFactor * options_.deadlines.heartbeat_bound)) {
    verdict = all_stand_still(views);
  }
  using Kind = telemetry::HangVerdict::Kind;
  if (verdict.kind == Kind::Probe) send_probes(verdict.ranks, now);
  if (verdict.kind == Kind::Condemn) events_.on_hang(verdict);
  if (verdict.kind == Kind::Unknown && verdict.text != last_unknown_) {
    last_unknown_ = verdict.text;
    log_warn(verdict.text);
  }
}

void Monitor::send_probes(const std::vector<Rank>& ranks, Nanos now) {
  for (Rank rank : ranks) {
    std::optional<ProbeState>& probe = ranks_[rank].probe;
    if (probe && (!probe->answered_at || now - probe->sent_at < kProbeEvery)) continue;
    const std::optional<WorkerId> worker = coordinator_.worker_of(rank);
    if (!worker) continue;
    probe = ProbeState{.id = next_probe_++, .sent_at = now, .answered_at = {}, .reply = {}};
    workers_.send(*worker, Probe{.id = probe->id});
  }
}

void Monitor::on_probe_reply(WorkerId worker, const ProbeReply& reply) {
  const std::optional<Rank> rank = coordinator_.rank_of(worker);
  if (!rank) return;
  std::optional<ProbeState>& probe = ranks_[*rank].probe;
  if (!probe || probe->id != reply.id) return;
  probe->answered_at = world_.clock().steady();
  probe->reply = reply;
}

}  // namespace holdfast::run
