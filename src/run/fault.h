// One fault: what was seen, who is to blame, and when each phase of the recovery ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "world/clock.h"

namespace holdfast::run {

enum class FaultKind : std::uint8_t {
  Killed,       ///< ended by SIGKILL that we did not send
  Crashed,      ///< ended by another signal, or left without an exception
  UserError,    ///< an exception of the user's own script
  Stopped,      ///< SIGSTOP
  Hung,         ///< has not arrived where the others wait; the interpreter answers
  GilHeld,      ///< has not arrived, and native code holds the interpreter lock
  Slow,         ///< late in most steps, by its own work
  GroupError,   ///< a collective failed and nobody is to blame
  CkptDamaged,  ///< a checkpoint did not verify
  CkptFailed,   ///< a checkpoint could not be written; training went on
  Unkillable,   ///< SIGKILL did not end it
};

/// The word in reports: "killed", "gil_held", "checkpoint_damaged", ...
const char* fault_word(FaultKind kind);

struct Fault {
  int id = 0;
  FaultKind kind = FaultKind::Crashed;
  std::vector<Rank> culprits;
  Step step = kNoStep;  ///< the step in flight
  Epoch epoch = 0;
  std::string seen;       ///< "exited by signal 9", "stopped for 0.21 s"
  std::string evidence;   ///< stack, sequence numbers, shard name
  bool in_place = false;  ///< survivors stayed alive
  /// Where a time is absent the phase was not reached (a later fault took over) or has no meaning (nothing to recover).
  world::Nanos seen_at{};
  std::optional<world::Nanos> fenced_at, regrouped_at, restored_at, first_step_at;
};

}  // namespace holdfast::run
