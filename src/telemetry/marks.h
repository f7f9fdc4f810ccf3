// What a rank says about itself: marks (something happened) and phases (what it is busy with). The numbers are part
// of docs/format-ring.md and of the Python binding: append, never renumber.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/ids.h"

namespace holdfast::telemetry {

enum class Mark : std::uint16_t {
  Attached,
  LoopBegin,
  StepBegin,   ///< begins phase Train
  GradsReady,  ///< own work of the step is done; from here on the rank may wait for others
  Collected,   ///< gradients of all ranks are here, the optimizer begins
  Applied,     ///< the optimizer is done
  StepEnd,     ///< begins phase Between
  Phase,       ///< the phase was set by hand
  GroupBegin,
  GroupMade,
  RestoreBegin,
  Restored,
  SnapshotBegin,
  SnapshotEnd,
  Finished,  ///< begins phase After
};
constexpr std::size_t kMarks = 15;

enum class Phase : std::uint16_t { Start, Compile, Train, Between, Evaluate, Checkpoint, Recover, After };
constexpr std::size_t kPhases = 8;

/// snake_case word for logs and JSON; "?" for a number that names none.
const char* mark_name(Mark mark);
const char* phase_name(Phase phase);

struct Event {
  std::int64_t time_ns = 0;  ///< CLOCK_MONOTONIC, never negative
  Step step = kNoStep;
  std::uint32_t epoch = 0;
  Mark mark = Mark::Attached;
  Phase phase = Phase::Start;  ///< the phase after this mark
  friend bool operator==(const Event&, const Event&) = default;
};

}  // namespace holdfast::telemetry
