#include "run/fault.h"

namespace holdfast::run {

const char* fault_word(FaultKind kind) {
  switch (kind) {
    case FaultKind::Killed: return "killed";
    case FaultKind::Crashed: return "crashed";
    case FaultKind::UserError: return "user_error";
    case FaultKind::Stopped: return "stopped";
    case FaultKind::Hung: return "hung";
    case FaultKind::GilHeld: return "gil_held";
    case FaultKind::Slow: return "slow";
    case FaultKind::GroupError: return "group_error";
    case FaultKind::CkptDamaged: return "checkpoint_damaged";
    case FaultKind::CkptFailed: return "checkpoint_failed";
    case FaultKind::Unkillable: return "unkillable";
  }
  return "crashed";
}

}  // namespace holdfast::run
