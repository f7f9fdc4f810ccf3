// Watches the ranks of a run: reads their rings, asks their interpreters, and has the judges decide.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "run/coordinator.h"
#include "run/workers.h"
#include "telemetry/deadlines.h"
#include "telemetry/hang_judge.h"
#include "telemetry/straggler.h"

namespace holdfast::run {

struct MonitorEvents {
  std::function<void(Rank, const telemetry::Event&)> on_mark;
  /// Every rank has completed `step`; the last of them at `at`.
  std::function<void(Step step, world::Nanos at)> on_step_done;
  std::function<void(const telemetry::HangVerdict&)> on_hang;
  std::function<void(const telemetry::SlowRank&)> on_slow;
};

class Monitor {
 public:
  /// All arguments outlive this object.
  Monitor(world::World& world, const RunOptions& options, Workers& workers, const Coordinator& coordinator,
          MonitorEvents events);
  /// Reads what is new in every ring.
  void poll();
  /// One round of judging.
  void judge();
  /// This process got no CPU for long: heartbeats may lie unread, and count as silence from now on only.
  void stood_still();
  void on_probe_reply(WorkerId worker, const ProbeReply& reply);
  /// All ranks go on at `step` in a new group.
  void regrouped(Step step);
  /// The newest step that every rank has completed; kNoStep before the first.
  Step all_done() const { return all_done_; }
  /// How long a step may last before a rank that holds others up is condemned.
  world::Nanos train_deadline() const { return deadlines_.deadline(telemetry::Phase::Train); }

 private:
  struct ProbeState {
    std::uint64_t id = 0;
    world::Nanos sent_at{};
    std::optional<world::Nanos> answered_at;
    ProbeReply reply;
  };
  struct RankState {
    Step done = kNoStep;
    std::optional<world::Nanos> step_began_at;
    std::optional<world::Nanos> phase_began_at;
    telemetry::Phase phase = telemetry::Phase::Start;
    std::optional<world::Nanos> done_at;
    bool first_step = true;
    std::optional<ProbeState> probe;
    std::optional<Step> slow_at;  ///< last found slow
  };
  void on_event(Rank rank, const telemetry::Event& event);
  void on_step_end(RankState& state, const telemetry::Event& event);
  void report_steps_done();
  void judge_speed(Step step);
  void send_probes(const std::vector<Rank>& ranks, world::Nanos now);
  telemetry::RankView view_of(Rank rank, WorkerId worker, world::Nanos now);

  world::World& world_;
  const RunOptions& options_;
  Workers& workers_;
  const Coordinator& coordinator_;
  MonitorEvents events_;
  telemetry::Deadlines deadlines_;
  std::vector<RankState> ranks_;
  std::vector<telemetry::StepTiming> timings_;
  Step first_step_ = 0;  // of this group
  Step all_done_ = kNoStep;
  std::uint64_t next_probe_ = 1;
  world::Nanos awake_since_{};
  std::string last_unknown_;
};

}  // namespace holdfast::run
