#include "telemetry/marks.h"

#include <array>

namespace holdfast::telemetry {

const char* mark_name(Mark mark) {
  static constexpr std::array<const char*, kMarks> kNames = {
      "attached",      "loop_begin", "step_begin",     "grads_ready",  "collected",
      "applied",       "step_end",   "phase",          "group_begin",  "group_made",
      "restore_begin", "restored",   "snapshot_begin", "snapshot_end", "finished"};
  const auto index = static_cast<std::size_t>(mark);
  return index < kNames.size() ? kNames[index] : "?";
}

const char* phase_name(Phase phase) {
  static constexpr std::array<const char*, kPhases> kNames = {"start",    "compile",    "train",   "between",
                                                              "evaluate", "checkpoint", "recover", "after"};
  const auto index = static_cast<std::size_t>(phase);
  return index < kNames.size() ? kNames[index] : "?";
}

}  // namespace holdfast::telemetry
