#include "telemetry/deadlines.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace holdfast::telemetry {
namespace {

Nanos longest(const auto& samples) {
  Nanos most{0};
  for (const auto& sample : samples) most = std::max(most, sample.took);
  return most;
}

Nanos median(const auto& samples) {
  if (samples.empty()) return Nanos{0};
  std::vector<Nanos> sorted;
  sorted.reserve(samples.size());
  for (const auto& sample : samples) sorted.push_back(sample.took);
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

/// In double: a factor times a duration may not fit 64-bit nanoseconds.
Nanos bounded(const LearnedBound& bound, Nanos median_seen, Nanos longest_seen) {
  const double wanted = std::max(bound.medians * static_cast<double>(median_seen.count()),
                                 bound.longests * static_cast<double>(longest_seen.count()));
  if (wanted >= static_cast<double>(bound.most.count())) return bound.most;
  return std::clamp(Nanos(static_cast<std::int64_t>(wanted)), bound.least, bound.most);
}

LearnedBound capped(LearnedBound bound, Nanos most) {
  bound.most = most;
  bound.least = std::min(bound.least, most);
  return bound;
}

struct Named {
  const char* name;
  Nanos value;
};

Status in_order(const Named& lower, const Named& upper) {
  if (lower.value < upper.value) return Ok{};
  return Error(Code::BadInput, std::string(lower.name) + " (" + seconds_text(lower.value) + ") must be below " +
                                   upper.name + " (" + seconds_text(upper.value) + ")");
}

Status check_bound(const char* name, const LearnedBound& bound) {
  const bool sane = bound.medians >= 0 && bound.longests >= 0 && bound.least > Nanos{0} && bound.least <= bound.most;
  if (sane) return Ok{};
  return Error(Code::BadInput, std::string(name) + ": least (" + seconds_text(bound.least) +
                                   ") must be above 0 and at most " + seconds_text(bound.most) +
                                   ", factors at least 0");
}

Nanos fixed_or(const DeadlinePolicy& policy, Phase phase, Nanos otherwise) {
  return policy.fixed[static_cast<std::size_t>(phase)].value_or(otherwise);
}

/// The longest this phase can ever be given.
Nanos longest_deadline(const DeadlinePolicy& policy, Phase phase) {
  switch (phase) {
    case Phase::Start: return fixed_or(policy, phase, policy.start);
    case Phase::Compile: return fixed_or(policy, phase, policy.compile);
    case Phase::Recover: return fixed_or(policy, phase, policy.recover);
    case Phase::Train: return fixed_or(policy, phase, policy.train.most);
    case Phase::Between: return fixed_or(policy, phase, policy.between.most);
    case Phase::Evaluate: return fixed_or(policy, phase, policy.evaluate.most);
    case Phase::Checkpoint: return fixed_or(policy, phase, policy.checkpoint.most);
    case Phase::After: return fixed_or(policy, phase, policy.after.most);
  }
  return policy.start;
}

}  // namespace

std::string seconds_text(Nanos time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", static_cast<double>(time.count()) / 1e9);
  return text;
}

Status check_ladder(const DeadlinePolicy& policy) {
  const Nanos train_least = fixed_or(policy, Phase::Train, policy.train.least);
  TRY(check_bound("train", policy.train), "time bounds");
  TRY(check_bound("first_step", policy.first_step), "time bounds");
  TRY(check_bound("between", policy.between), "time bounds");
  TRY(check_bound("evaluate", policy.evaluate), "time bounds");
  TRY(check_bound("checkpoint", policy.checkpoint), "time bounds");
  TRY(check_bound("after", policy.after), "time bounds");
  TRY(check_bound("suspicion", policy.suspicion), "time bounds");
  TRY(check_bound("gil", policy.gil), "time bounds");
  TRY(in_order({"heartbeat_every", 3 * policy.heartbeat_every}, {"heartbeat_bound", policy.heartbeat_bound}),
      "time bounds (three heartbeats)");
  TRY(in_order({"stop_grace", policy.stop_grace}, {"heartbeat_bound", policy.heartbeat_bound}), "time bounds");
  TRY(in_order({"suspicion", policy.suspicion.least}, {"the train deadline", train_least}), "time bounds");
  TRY(in_order({"gil", policy.gil.least}, {"the train deadline", train_least}), "time bounds");
  for (std::size_t index = 0; index < kPhases; ++index) {
    const auto phase = static_cast<Phase>(index);
    const std::string name = std::string("the ") + phase_name(phase) + " deadline";
    const Nanos most = longest_deadline(policy, phase);
    TRY(in_order({"zero", Nanos{0}}, {name.c_str(), most}), "time bounds");
    TRY(in_order({name.c_str(), most}, {"group_timeout", policy.group_timeout}), "time bounds");
  }
  return Ok{};
}

void Deadlines::observe(Phase phase, Step step, Nanos took) {
  auto& samples = samples_[static_cast<std::size_t>(phase)];
  const auto known = std::find_if(samples.rbegin(), samples.rend(), [&](const Sample& s) { return s.step == step; });
  if (known != samples.rend()) {
    known->took = std::max(known->took, took);
    return;
  }
  samples.push_back({step, took});
  if (samples.size() > policy_.window_steps) samples.pop_front();
}

void Deadlines::observe_first_step(Nanos took) {
  first_steps_.push_back({kNoStep, took});
  if (first_steps_.size() > policy_.window_steps) first_steps_.pop_front();
}

std::optional<Nanos> Deadlines::median_step() const {
  if (!learned()) return std::nullopt;
  return median(samples(Phase::Train));
}

Nanos Deadlines::deadline(Phase phase) const {
  const auto& fixed = policy_.fixed[static_cast<std::size_t>(phase)];
  if (fixed) return *fixed;
  const Nanos step = median_step().value_or(Nanos{0});
  const Nanos seen = longest(samples(phase));
  switch (phase) {
    case Phase::Start: return policy_.start;
    case Phase::Compile: return policy_.compile;
    case Phase::Recover: return policy_.recover;
    case Phase::Train: return learned() ? bounded(policy_.train, step, seen) : deadline(Phase::Start);
    case Phase::Between: return learned() ? bounded(policy_.between, step, seen) : policy_.between.most;
    case Phase::Evaluate: return learned() ? bounded(policy_.evaluate, step, seen) : policy_.evaluate.most;
    case Phase::Checkpoint: return learned() ? bounded(policy_.checkpoint, step, seen) : policy_.checkpoint.most;
    case Phase::After: return bounded(policy_.after, step, seen);
  }
  return policy_.start;
}

HangPolicy::StepBounds Deadlines::step_bounds() const {
  HangPolicy::StepBounds bounds;
  bounds.deadline = deadline(Phase::Train);
  const Nanos seen = longest(samples(Phase::Train));
  const Nanos step = median(samples(Phase::Train));
  bounds.suspicion = learned() ? bounded(capped(policy_.suspicion, bounds.deadline), step, seen) : bounds.deadline;
  bounds.gil = learned() ? bounded(capped(policy_.gil, bounds.deadline), step, seen) : bounds.deadline;
  return bounds;
}

HangPolicy::StepBounds Deadlines::first_step_bounds() const {
  HangPolicy::StepBounds bounds;
  const Nanos ordinary = deadline(Phase::Train);
  const Nanos seen = longest(first_steps_);
  bounds.deadline = first_steps_.empty() ? std::max(ordinary, policy_.start)
                                         : std::max(ordinary, bounded(policy_.first_step, Nanos{0}, seen));
  const HangPolicy::StepBounds later = step_bounds();
  bounds.suspicion = std::max(later.suspicion, bounded(capped(policy_.suspicion, bounds.deadline), Nanos{0}, seen));
  bounds.gil = std::max(later.gil, bounded(capped(policy_.gil, bounds.deadline), Nanos{0}, seen));
  if (first_steps_.empty()) bounds.suspicion = bounds.gil = bounds.deadline;
  return bounds;
}

HangPolicy Deadlines::hang_policy() const {
  HangPolicy policy;
  for (std::size_t index = 0; index < kPhases; ++index) policy.deadline[index] = deadline(static_cast<Phase>(index));
  policy.step = step_bounds();
  policy.first_step = first_step_bounds();
  policy.stop_grace = policy_.stop_grace;
  policy.heartbeat_bound = policy_.heartbeat_bound;
  return policy;
}

}  // namespace holdfast::telemetry
