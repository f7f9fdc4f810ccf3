#include "run/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace holdfast::run {
namespace {

using nlohmann::json;
using world::Nanos;

double seconds(Nanos time) { return std::chrono::duration<double>(time).count(); }

json seconds_between(Nanos from, const std::optional<Nanos>& to) {
  if (!to) return nullptr;
  return seconds(std::max(*to - from, Nanos{0}));
}

// The first fault seen after `began` for which `answers` holds.
template <typename Answers>
std::optional<std::size_t> first_fault(const RunRecord& record, Nanos began, Answers answers) {
  for (std::size_t index = 0; index < record.faults.size(); ++index) {
    if (record.faults[index].seen_at >= began && answers(record.faults[index])) return index;
  }
  return std::nullopt;
}

json fault_json(const Fault& fault, Nanos run_began, std::optional<Nanos> began_at) {
  const Nanos origin = std::min(began_at.value_or(fault.seen_at), fault.seen_at);
  json phases = {{"detect", seconds(fault.seen_at - origin)}};
  Nanos previous = fault.seen_at;
  const auto phase = [&](const char* name, const std::optional<Nanos>& at) {
    phases[name] = seconds_between(previous, at);
    if (at) previous = std::max(previous, *at);
  };
  phase("fence", fault.fenced_at);
  phase("regroup", fault.regrouped_at);
  phase("restore", fault.restored_at);
  phase("first_step", fault.first_step_at);
  return {{"id", fault.id},
          {"step", fault.step},
          {"epoch", fault.epoch},
          {"seen", fault.seen},
          {"verdict", fault_word(fault.kind)},
          {"culprit", fault.culprits},
          {"in_place", fault.in_place},
          {"evidence", fault.evidence},
          {"at_s", seconds(fault.seen_at - run_began)},
          {"detect_s", began_at ? json(seconds(fault.seen_at - origin)) : json(nullptr)},
          {"next_step_s", seconds_between(origin, fault.first_step_at)},
          {"phases", phases}};
}

json injected_json(const RunRecord& record, std::size_t index) {
  const Injected& each = record.injected[index];
  const std::vector<std::size_t> answers = answering_faults(record, index);
  const FaultKind expected = expected_kind(each.plan.kind);
  const bool named = !answers.empty() && std::all_of(answers.begin(), answers.end(), [&](std::size_t answer) {
    return record.faults[answer].kind == expected;
  });
  return {{"kind", planned_word(each.plan.kind)},
          {"ranks", each.plan.ranks},
          {"step", each.plan.step},
          {"fired", each.fired},
          {"at_s", each.began_at ? json(seconds(*each.began_at - record.began_at)) : json(nullptr)},
          {"expected", fault_word(expected)},
          {"found", !answers.empty()},
          {"named", named},
          {"faults", answers}};
}

}  // namespace

FaultKind expected_kind(PlannedKind kind) {
  switch (kind) {
    case PlannedKind::Sigkill:
    case PlannedKind::KillInRecovery: return FaultKind::Killed;
    case PlannedKind::Sigstop: return FaultKind::Stopped;
    case PlannedKind::Sleep: return FaultKind::Hung;
    case PlannedKind::Gil: return FaultKind::GilHeld;
    case PlannedKind::Slow: return FaultKind::Slow;
    case PlannedKind::FlipCheckpoint: return FaultKind::CkptDamaged;
    case PlannedKind::DiskFull: return FaultKind::CkptFailed;
    case PlannedKind::WriterCrash: return FaultKind::Crashed;
  }
  return FaultKind::Killed;
}

std::vector<std::size_t> answering_faults(const RunRecord& record, std::size_t index) {
  const Injected& injected = record.injected[index];
  if (!injected.began_at) return {};
  const FaultKind expected = expected_kind(injected.plan.kind);
  if (injected.plan.kind == PlannedKind::FlipCheckpoint) {
    const auto damaged =
        first_fault(record, *injected.began_at, [&](const Fault& fault) { return fault.kind == expected; });
    return damaged ? std::vector<std::size_t>{*damaged} : std::vector<std::size_t>{};
  }
  std::vector<std::size_t> answers;
  for (Rank rank : injected.plan.ranks) {
    const auto answer = first_fault(record, *injected.began_at, [&](const Fault& fault) {
      return std::find(fault.culprits.begin(), fault.culprits.end(), rank) != fault.culprits.end();
    });
    if (!answer) return {};
    if (std::find(answers.begin(), answers.end(), *answer) == answers.end()) answers.push_back(*answer);
  }
  return answers;
}

std::string report_json(const RunRecord& record) {
  json goodput = json::object();
  for (std::size_t bucket = 0; bucket < telemetry::kBuckets; ++bucket) {
    goodput[telemetry::bucket_name(static_cast<telemetry::Bucket>(bucket))] = seconds(record.goodput[bucket]);
  }
  std::map<std::size_t, Nanos> began;
  json injected = json::array();
  for (std::size_t index = 0; index < record.injected.size(); ++index) {
    for (std::size_t answer : answering_faults(record, index)) began.emplace(answer, *record.injected[index].began_at);
    injected.push_back(injected_json(record, index));
  }
  json faults = json::array();
  for (std::size_t index = 0; index < record.faults.size(); ++index) {
    const auto at = began.find(index);
    faults.push_back(fault_json(record.faults[index], record.began_at,
                                at == began.end() ? std::nullopt : std::optional(at->second)));
  }
  json passed_over = json::array();
  for (const PassedOverCheckpoint& each : record.passed_over) {
    passed_over.push_back({{"checkpoint", each.checkpoint}, {"why", each.why}});
  }
  const json report = {{"run_id", record.run_id},
                       {"world_size", record.world_size},
                       {"exit_code", record.exit_code},
                       {"why", record.why},
                       {"wall_s", seconds(record.ended_at - record.began_at)},
                       {"first_step", record.first_step},
                       {"steps", record.steps},
                       {"steps_lost", record.steps_lost},
                       {"steps_redone", record.steps_redone},
                       {"ettr", record.ettr},
                       {"goodput", goodput},
                       {"epochs", record.epochs},
                       {"restarts", record.restarts},
                       {"faults", faults},
                       {"injected", injected},
                       {"passed_over", passed_over}};
  return report.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string fault_line(const Fault& fault, std::optional<Nanos> began_at) {
  std::string line;
  for (Rank rank : fault.culprits) line += (line.empty() ? "rank " : ", ") + std::to_string(rank);
  if (!line.empty()) line += " ";
  line += std::string(fault_word(fault.kind)) + " (" + fault.seen + ")";
  if (fault.step != kNoStep) line += " at step " + std::to_string(fault.step);
  char times[96];
  if (began_at && *began_at <= fault.seen_at) {
    std::snprintf(times, sizeof times, "; seen after %.1f ms", 1e3 * seconds(fault.seen_at - *began_at));
    line += times;
  }
  if (fault.first_step_at) {
    const Nanos origin = std::min(began_at.value_or(fault.seen_at), fault.seen_at);
    std::snprintf(times, sizeof times, "; next step of all ranks after %.0f ms",
                  1e3 * seconds(*fault.first_step_at - origin));
    line += times;
  }
  return line;
}

}  // namespace holdfast::run
