// A schedule of faults to act out in a run, from a JSON file: {"faults": [{"kind": "sigkill", "step": 40, "rank": 2}]}.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace holdfast::run {

enum class PlannedKind : std::uint8_t {
  Sigkill,
  Sigstop,
  Sleep,           ///< the rank sleeps inside the step for ever, its heart still beating
  Gil,             ///< a native loop that holds the interpreter lock for ever
  Slow,            ///< CPU stolen for `seconds`
  KillInRecovery,  ///< kills the first rank, and one of the others while its recovery runs
  FlipCheckpoint,  ///< flips a byte of the newest checkpoint, then kills every rank
  DiskFull,        ///< the next checkpoint finds the disk full
  WriterCrash,     ///< the process dies inside the checkpoint writer
};
const char* planned_word(PlannedKind kind);

struct PlannedFault {
  PlannedKind kind = PlannedKind::Sigkill;
  Step step = 0;  ///< fires when the first rank begins it
  std::vector<Rank> ranks;
  double seconds = 3.0;
};

/// At most 1 MiB and 10,000 faults. Errors: BadInput, with `name`, the entry's number and what would be right.
Result<std::vector<PlannedFault>> parse_fault_plan(const std::string& name, std::string_view json, Rank world_size);

}  // namespace holdfast::run
