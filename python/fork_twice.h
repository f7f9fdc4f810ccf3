// Forks a process that is nobody's child here: its parent dies at once, so that it falls to the next subreaper.
#pragma once

#include <sys/types.h>

#include "base/result.h"

namespace holdfast::python {

/// 0 in the new process, which leads a session of its own; its pid here, once the process between is gone. The memory
/// is mapped anew once, not twice: the process between borrows it for the moment that it lives (a fork of a process
/// with torch in it takes 6 ms, and as much again to undo). Holds the GIL throughout. Errors: Unavailable (a limit is
/// reached).
Result<pid_t> fork_twice();

}  // namespace holdfast::python
