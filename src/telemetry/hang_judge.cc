// The order of the questions: stopped? frozen? then, of the ranks that could run: whom do the others wait for?
#include "telemetry/hang_judge.h"

#include <algorithm>
#include <utility>

namespace holdfast::telemetry {
namespace {

using Kind = HangVerdict::Kind;
using Views = std::vector<const RankView*>;

/// Alone there is no evidence from others, only time: wait this much longer.
constexpr int kAloneFactor = 3;

std::string list(const Views& views) {
  std::string text = views.size() == 1 ? "rank" : "ranks";
  for (const RankView* view : views) text += " " + std::to_string(view->rank);
  return text;
}

std::vector<Rank> numbers(const Views& views) {
  std::vector<Rank> ranks;
  for (const RankView* view : views) ranks.push_back(view->rank);
  return ranks;
}

HangVerdict verdict(Kind kind, const Views& of, std::string word, std::string text) {
  return {kind, numbers(of), std::move(word), std::move(text), {}};
}

HangVerdict nothing() { return {}; }

/// A recompilation may come in the middle of any step; its frames tell.
bool compiles(const RankView& view) {
  if (!view.probe || !view.probe->answered) return false;
  const std::string& stack = view.probe->stack;
  return stack.find("torch/_dynamo/") != std::string::npos || stack.find("torch/_inductor/") != std::string::npos;
}

std::string where(const RankView& view) {
  std::string text = "rank " + std::to_string(view.rank) + " in " + phase_name(view.phase);
  if (view.step != kNoStep) text += " of step " + std::to_string(view.step);
  text += " for " + seconds_text(view.in_phase_for);
  if (view.probe && view.probe->answered) text += ", collective " + std::to_string(view.probe->sequence);
  return text;
}

class Group {
 public:
  Group(std::span<const RankView> ranks, const HangPolicy& policy) : ranks_(ranks), policy_(policy) {}

  HangVerdict judge() const;

 private:
  template <typename Predicate>
  Views select(Predicate predicate) const {
    Views found;
    for (const RankView& view : ranks_) {
      if (predicate(view)) found.push_back(&view);
    }
    return found;
  }

  // What one rank is up to.
  bool judged(const RankView& v) const { return !v.waits && !v.exiting; }
  bool in_step(const RankView& v) const { return judged(v) && v.phase == Phase::Train; }
  bool answered(const RankView& v) const { return v.probe && v.probe->answered; }
  const HangPolicy::StepBounds& bounds(const RankView& v) const {
    return v.first_step ? policy_.first_step : policy_.step;
  }
  Nanos deadline(const RankView& v) const {
    const Nanos of_phase = policy_.deadline[static_cast<std::size_t>(v.phase)];
    if (v.phase != Phase::Train) return of_phase;
    return compiles(v) ? std::max(bounds(v).deadline, policy_.deadline[static_cast<std::size_t>(Phase::Compile)])
                       : bounds(v).deadline;
  }
  bool late(const RankView& v) const { return judged(v) && v.in_phase_for > deadline(v); }
  bool suspect(const RankView& v) const { return in_step(v) && v.in_phase_for > bounds(v).suspicion; }
  bool asked_in_vain(const RankView& v) const {
    return suspect(v) && v.probe && !v.probe->answered && v.probe->waiting_for > bounds(v).gil;
  }
  /// Being asked right now: whether it answers is not known yet.
  bool pending(const RankView& v) const { return in_step(v) && v.probe && !v.probe->answered && !asked_in_vain(v); }
  /// Busy with something that may take its time: the others wait for it rightly.
  bool excused(const RankView& v) const {
    return v.exiting || (judged(v) && v.phase != Phase::Train && v.phase != Phase::After && !late(v));
  }
  /// Arrived where `culprit` is missing, by what was marked (no probe needed).
  bool passed(const RankView& v, const RankView& culprit) const {
    const bool ended_that_step = v.phase == Phase::Between && culprit.phase == Phase::Train && v.step >= culprit.step;
    return v.waits || v.phase == Phase::After || ended_that_step || (in_step(v) && v.step > culprit.step);
  }
  bool few(const Views& culprits) const { return !culprits.empty() && culprits.size() * 2 <= ranks_.size(); }

  // The questions, in order. None: ask the next one.
  std::optional<HangVerdict> stopped() const;
  std::optional<HangVerdict> frozen() const;
  std::optional<HangVerdict> alone() const;
  std::optional<HangVerdict> to_probe() const;
  std::optional<HangVerdict> gil_held() const;
  std::optional<HangVerdict> late_elsewhere() const;
  std::optional<HangVerdict> late_in_step() const;
  HangVerdict unknown() const;

  std::span<const RankView> ranks_;
  const HangPolicy& policy_;
};

std::optional<HangVerdict> Group::stopped() const {
  const Views over = select([&](const RankView& v) { return v.stopped_for && *v.stopped_for > policy_.stop_grace; });
  if (over.empty()) {
    const bool any =
        std::any_of(ranks_.begin(), ranks_.end(), [](const RankView& v) { return v.stopped_for.has_value(); });
    return any ? std::optional(nothing()) : std::nullopt;  // it may be continued yet; the others wait for it
  }
  return verdict(Kind::Condemn, over, "stopped",
                 list(over) + " stopped by a signal for " + seconds_text(*over.front()->stopped_for) + " (grace " +
                     seconds_text(policy_.stop_grace) + ")");
}

std::optional<HangVerdict> Group::frozen() const {
  const Nanos bound = policy_.heartbeat_bound * (ranks_.size() == 1 ? kAloneFactor : 1);
  const Views silent = select([&](const RankView& v) { return v.heartbeat_age && *v.heartbeat_age > bound; });
  if (silent.empty()) return std::nullopt;
  if (ranks_.size() > 1 && silent.size() == ranks_.size()) {
    return verdict(Kind::Unknown, silent, "", "no rank's heartbeat arrives: it may be the listener that stood still");
  }
  return verdict(Kind::Condemn, silent, "hung",
                 list(silent) + " silent: no heartbeat for " + seconds_text(*silent.front()->heartbeat_age) +
                     " (bound " + seconds_text(bound) + "), the whole process stands still" +
                     (silent.front()->exiting ? " while exiting" : ""));
}

std::optional<HangVerdict> Group::alone() const {
  if (ranks_.size() != 1) return std::nullopt;
  const RankView& view = ranks_.front();
  const Views self = {&view};
  if (!judged(view) || view.in_phase_for <= kAloneFactor * deadline(view)) return nothing();
  const std::string late_text = where(view) + " (deadline " + seconds_text(kAloneFactor * deadline(view)) + ")";
  if (view.phase != Phase::Train) return verdict(Kind::Condemn, self, "hung", late_text);
  if (!view.probe) return verdict(Kind::Probe, self, "", "");
  if (answered(view)) return verdict(Kind::Condemn, self, "hung", late_text + "; its stack:\n" + view.probe->stack);
  if (!asked_in_vain(view)) return nothing();
  return verdict(Kind::Condemn, self, "gil_held", late_text + ", its interpreter does not answer");
}

std::optional<HangVerdict> Group::to_probe() const {
  if (select([&](const RankView& v) { return suspect(v); }).empty()) return std::nullopt;
  Views ask = select([&](const RankView& v) { return in_step(v) && !v.probe; });
  if (!ask.empty()) return verdict(Kind::Probe, ask, "", "");

  // Where a rank is late, what is known must be from after its deadline, and not older than one deadline.
  const Views over = select([&](const RankView& v) { return in_step(v) && late(v); });
  if (over.empty()) return std::nullopt;
  Nanos age_max = policy_.step.deadline;
  for (const RankView* view : over) age_max = std::min(age_max, view->in_phase_for - deadline(*view));
  ask = select([&](const RankView& v) { return in_step(v) && answered(v) && v.probe->age >= age_max; });
  if (!ask.empty()) return verdict(Kind::Probe, ask, "", "");
  return std::nullopt;
}

std::optional<HangVerdict> Group::gil_held() const {
  const Views culprits = select([&](const RankView& v) { return asked_in_vain(v); });
  if (culprits.empty()) return std::nullopt;
  const RankView& first = *culprits.front();
  const auto busy = [&](const RankView& v) {
    if (passed(v, first) || asked_in_vain(v)) return false;
    return in_step(v) ? !(answered(v) && suspect(v)) : excused(v);
  };
  if (!select(busy).empty()) return nothing();
  const Views witnesses = select([&](const RankView& v) {
    return !asked_in_vain(v) && (passed(v, first) || (in_step(v) && answered(v) && suspect(v)));
  });
  if (witnesses.empty() || !few(culprits)) return std::nullopt;
  return verdict(Kind::Condemn, culprits, "gil_held",
                 where(first) + ": its interpreter has not answered for " + seconds_text(first.probe->waiting_for) +
                     " (bound " + seconds_text(bounds(first).gil) + ") while " + list(witnesses) +
                     " answered and wait");
}

std::optional<HangVerdict> Group::late_elsewhere() const {
  const auto guilty = [&](const RankView& v) { return v.phase != Phase::Train && late(v); };
  const Views culprits = select(guilty);
  if (!few(culprits)) return std::nullopt;
  const auto waits_for = [&](const RankView& v, const RankView& culprit) {
    // A rank in Between has ended its step; where the script evaluates or saves, its step may be this or the next.
    const Step awaited_from = culprit.phase == Phase::Between ? culprit.step + 1 : culprit.step;
    return passed(v, culprit) || (suspect(v) && v.step >= awaited_from);
  };
  const Views witnesses = select([&](const RankView& v) {
    return !guilty(v) && std::all_of(culprits.begin(), culprits.end(), [&](auto* c) { return waits_for(v, *c); });
  });
  if (witnesses.size() + culprits.size() != ranks_.size()) return std::nullopt;
  const RankView& first = *culprits.front();
  return verdict(Kind::Condemn, culprits, "hung",
                 where(first) + " (deadline " + seconds_text(deadline(first)) + ") while " + list(witnesses) + " wait");
}

std::optional<HangVerdict> Group::late_in_step() const {
  const Views known = select([&](const RankView& v) { return in_step(v) && answered(v); });
  if (known.empty()) return std::nullopt;
  const auto position = [](const RankView* v) { return std::pair(v->step, v->probe->sequence); };
  const RankView* last = *std::min_element(
      known.begin(), known.end(), [&](const RankView* a, const RankView* b) { return position(a) < position(b); });
  const Views culprits =
      select([&](const RankView& v) { return in_step(v) && answered(v) && late(v) && position(&v) == position(last); });
  const Views ahead = select([&](const RankView& v) {
    return passed(v, *last) || (in_step(v) && answered(v) && position(&v) > position(last));
  });
  if (ahead.empty() || !few(culprits)) return std::nullopt;
  // Somebody rightly busy elsewhere: whoever seems late may only be waiting for that one.
  if (!select([&](const RankView& v) { return excused(v) && !passed(v, *last); }).empty()) return nothing();
  const RankView& first = *culprits.front();
  return verdict(Kind::Condemn, culprits, "hung",
                 where(first) + " (deadline " + seconds_text(deadline(first)) + ") has not arrived where " +
                     list(ahead) + " wait; its stack:\n" + first.probe->stack);
}

HangVerdict Group::unknown() const {
  const Views over = select([&](const RankView& v) { return late(v) && v.phase != Phase::After; });
  const Views busy = select([&](const RankView& v) { return excused(v); });
  if (over.empty() || !busy.empty()) return nothing();
  std::string text = "late, but nothing points at one rank:";
  for (const RankView* view : over) {
    text += " " + where(*view) + (view->probe && !view->probe->answered ? ", does not answer;" : ";");
  }
  text.pop_back();
  return verdict(Kind::Unknown, over, "", std::move(text));
}

HangVerdict Group::judge() const {
  if (auto found = stopped()) return *std::move(found);
  if (auto found = frozen()) return *std::move(found);
  if (auto found = alone()) return *std::move(found);
  if (auto found = late_elsewhere()) return *std::move(found);
  if (auto found = to_probe()) return *std::move(found);
  if (auto found = gil_held()) return *std::move(found);
  if (!select([&](const RankView& v) { return pending(v); }).empty()) return nothing();
  if (auto found = late_in_step()) return *std::move(found);
  return unknown();
}

}  // namespace

HangVerdict judge_hang(std::span<const RankView> ranks, const HangPolicy& policy) {
  HangVerdict verdict = Group(ranks, policy).judge();
  for (const RankView& view : ranks) {
    const auto& bounds = view.first_step ? policy.first_step : policy.step;
    if (view.probe && !view.probe->answered && view.probe->waiting_for > bounds.gil) {
      verdict.probes_lost.push_back(view.rank);
    }
  }
  return verdict;
}

}  // namespace holdfast::telemetry
