#include "telemetry/marks.h"

#include <array>

namespace holdfast::telemetry {

namespace {

constexpr std::array<const char*, kMarks> kMarkNames = {
    "attached",    "loop_begin", "step_begin",    "grads_ready", "collected",      "applied",      "step_end", "phase",
    "group_begin", "group_made", "restore_begin", "restored",    "snapshot_begin", "snapshot_end", "finished"};
constexpr std::array<const char*, kPhases> kPhaseNames = {"start",    "compile",    "train",   "between",
                                                          "evaluate", "checkpoint", "recover", "after"};

template <typename Names>
const char* name_at(const Names& names, std::size_t index) {
  return index < names.size() ? names[index] : "?";
}

}  // namespace

const char* mark_name(Mark mark) { return name_at(kMarkNames, static_cast<std::size_t>(mark)); }
const char* phase_name(Phase phase) { return name_at(kPhaseNames, static_cast<std::size_t>(phase)); }

}  // namespace holdfast::telemetry
