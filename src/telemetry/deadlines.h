// How long a phase may take before somebody looks: learned from the run itself, bounded by a policy.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <string>

#include "base/result.h"
#include "telemetry/marks.h"
#include "world/clock.h"

namespace holdfast::telemetry {

using world::Nanos;

/// `clamp(max(medians x the median step, longests x the longest seen), least, most)`
struct LearnedBound {
  double medians = 0;
  double longests = 0;
  Nanos least{0};
  Nanos most{0};
};

/// Every time bound of hang detection, by name. `check_ladder` says whether they fit together.
struct DeadlinePolicy {
  std::size_t window_steps = 64;  ///< steps remembered, per phase
  std::size_t samples_min = 3;    ///< train steps seen before learning replaces `start`

  Nanos start = std::chrono::minutes(10);  ///< until attached; also steps before enough were seen
  Nanos compile = std::chrono::minutes(30);
  Nanos recover = std::chrono::minutes(10);
  LearnedBound train = {12, 4, std::chrono::seconds(1), std::chrono::minutes(30)};
  /// The first step of a process or of a new group: lazy set-up makes it longer than others, by its own measure.
  LearnedBound first_step = {0, 5, std::chrono::seconds(10), std::chrono::minutes(30)};
  LearnedBound between = {100, 5, std::chrono::seconds(60), std::chrono::hours(2)};
  LearnedBound evaluate = {100, 5, std::chrono::seconds(60), std::chrono::hours(2)};
  LearnedBound checkpoint = {100, 5, std::chrono::seconds(60), std::chrono::hours(2)};
  LearnedBound after = {100, 5, std::chrono::hours(2), std::chrono::hours(2)};

  /// In a step for longer than this: look at the rank (a probe costs it microseconds). `most` is the train deadline.
  LearnedBound suspicion = {3, 2, std::chrono::milliseconds(150), std::chrono::minutes(30)};
  /// The interpreter lock is not handed over for longer than this. `most` is the train deadline.
  LearnedBound gil = {3, 2, std::chrono::milliseconds(250), std::chrono::minutes(30)};

  Nanos stop_grace = std::chrono::milliseconds(200);  ///< stopped (SIGSTOP) for longer: condemned
  Nanos heartbeat_every = std::chrono::milliseconds(200);
  Nanos heartbeat_bound = std::chrono::seconds(2);  ///< silence of the native thread
  Nanos group_timeout = std::chrono::hours(3);      ///< the process group's own: must never speak first

  /// Set by hand (--train-timeout and kin): replaces what would be learned.
  std::array<std::optional<Nanos>, kPhases> fixed{};
};

/// Refuses bounds that contradict each other (behaviour 18): BadInput with one line that names both and their values.
Status check_ladder(const DeadlinePolicy& policy);

/// The bounds at one moment, for the judge. Plain values.
struct HangPolicy {
  struct StepBounds {
    Nanos deadline{0};
    Nanos suspicion{0};
    Nanos gil{0};
  };
  std::array<Nanos, kPhases> deadline{};  ///< by phase; Train's is `step.deadline`
  StepBounds step;
  StepBounds first_step;
  Nanos stop_grace{0};
  Nanos heartbeat_bound{0};
};

/// "1.25 s", for people.
std::string seconds_text(Nanos time);

class Deadlines {
 public:
  explicit Deadlines(const DeadlinePolicy& policy = {}) : policy_(policy) {}

  /// `phase` at `step` took this long on some rank; of several reports for one step the longest counts. Leave out
  /// steps that a fault cut short or stretched, and first steps (see `observe_first_step`).
  void observe(Phase phase, Step step, Nanos took);
  void observe_first_step(Nanos took);

  Nanos deadline(Phase phase) const;
  /// Median train step; none before `samples_min`.
  std::optional<Nanos> median_step() const;
  HangPolicy hang_policy() const;

 private:
  struct Sample {
    Step step;
    Nanos took;
  };
  using Samples = std::deque<Sample>;
  const Samples& samples(Phase phase) const { return samples_[static_cast<std::size_t>(phase)]; }
  bool learned() const { return samples(Phase::Train).size() >= policy_.samples_min; }
  HangPolicy::StepBounds step_bounds() const;
  HangPolicy::StepBounds first_step_bounds() const;

  DeadlinePolicy policy_;
  std::array<Samples, kPhases> samples_;
  Samples first_steps_;
};

}  // namespace holdfast::telemetry
