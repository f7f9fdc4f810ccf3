#include "run/fault_plan.h"

#include <array>
#include <nlohmann/json.hpp>

namespace holdfast::run {
namespace {

using nlohmann::json;

constexpr std::array kKinds = {
    PlannedKind::Sigkill,    PlannedKind::Sigstop,        PlannedKind::Sleep,          PlannedKind::Gil,
    PlannedKind::Slow,       PlannedKind::KillInRecovery, PlannedKind::FlipCheckpoint, PlannedKind::DiskFull,
    PlannedKind::WriterCrash};
constexpr std::size_t kBytesMax = std::size_t{1} << 20;
constexpr std::size_t kFaultsMax = 10'000;
constexpr int kDepthMax = 8;

Result<PlannedKind> kind_of(const json& entry) {
  const auto found = entry.find("kind");
  std::string known;
  for (PlannedKind kind : kKinds) {
    if (found != entry.end() && found->is_string() && *found == planned_word(kind)) return kind;
    known += (known.empty() ? "" : ", ") + std::string(planned_word(kind));
  }
  return Error(Code::BadInput, "\"kind\" must be one of " + known);
}

Result<Rank> rank_of(const json& value, Rank world_size) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= world_size) {
    return Error(Code::BadInput, "a rank must be a whole number from 0 to " + std::to_string(world_size - 1));
  }
  return value.get<Rank>();
}

Result<PlannedFault> parse_entry(const json& entry, Rank world_size) {
  if (!entry.is_object()) return Error(Code::BadInput, "a fault must be an object");
  for (const auto& [key, value] : entry.items()) {
    if (key != "kind" && key != "step" && key != "rank" && key != "ranks" && key != "seconds") {
      return Error(Code::BadInput, "unknown key \"" + key + "\"; known: kind, step, rank, ranks, seconds");
    }
  }
  PlannedFault fault;
  fault.kind = TRY(kind_of(entry), "kind");
  const auto step = entry.find("step");
  if (step == entry.end() || !step->is_number_unsigned() || step->get<std::uint64_t>() > 1'000'000'000'000) {
    return Error(Code::BadInput, "\"step\" must be a whole number from 0");
  }
  fault.step = step->get<Step>();
  if (const auto rank = entry.find("rank"); rank != entry.end()) {
    fault.ranks.push_back(TRY(rank_of(*rank, world_size), "rank"));
  }
  if (const auto ranks = entry.find("ranks"); ranks != entry.end()) {
    if (!ranks->is_array()) return Error(Code::BadInput, "\"ranks\" must be a list of ranks");
    for (const json& rank : *ranks) fault.ranks.push_back(TRY(rank_of(rank, world_size), "ranks"));
  }
  if (fault.ranks.empty()) {
    if (fault.kind != PlannedKind::FlipCheckpoint) return Error(Code::BadInput, "\"rank\" or \"ranks\" is missing");
  }
  if (const auto seconds = entry.find("seconds"); seconds != entry.end()) {
    if (!seconds->is_number() || !(seconds->get<double>() > 0) || seconds->get<double>() > 86'400) {
      return Error(Code::BadInput, "\"seconds\" must be a number above 0, at most 86400");
    }
    fault.seconds = seconds->get<double>();
  }
  return fault;
}

// nlohmann's parser keeps its own stack, but the value it builds is freed by recursion: refuse deep nesting up front.
json parse_bounded(std::string_view text) {
  return json::parse(
      text, [](int depth, json::parse_event_t, json&) { return depth <= kDepthMax; }, /*allow_exceptions=*/false);
}

}  // namespace

const char* planned_word(PlannedKind kind) {
  switch (kind) {
    case PlannedKind::Sigkill: return "sigkill";
    case PlannedKind::Sigstop: return "sigstop";
    case PlannedKind::Sleep: return "sleep";
    case PlannedKind::Gil: return "gil";
    case PlannedKind::Slow: return "slow";
    case PlannedKind::KillInRecovery: return "kill_in_recovery";
    case PlannedKind::FlipCheckpoint: return "flip_checkpoint";
    case PlannedKind::DiskFull: return "disk_full";
    case PlannedKind::WriterCrash: return "writer_crash";
  }
  return "sigkill";
}

Result<std::vector<PlannedFault>> parse_fault_plan(const std::string& name, std::string_view text, Rank world_size) {
  if (text.size() > kBytesMax) return Error(Code::BadInput, name + ": larger than 1 MiB");
  const json document = parse_bounded(text);
  if (!document.is_object() || !document.contains("faults") || !document["faults"].is_array()) {
    return Error(Code::BadInput,
                 name + ": must be JSON like {\"faults\": [{\"kind\": \"sigkill\", \"step\": 40, \"rank\": 2}]}");
  }
  const json& entries = document["faults"];
  if (entries.size() > kFaultsMax) return Error(Code::BadInput, name + ": more than 10000 faults");
  std::vector<PlannedFault> plan;
  for (const json& entry : entries) {
    plan.push_back(TRY(parse_entry(entry, world_size), name + ": fault " + std::to_string(plan.size() + 1)));
  }
  return plan;
}

}  // namespace holdfast::run
