// What /proc says about processes.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "world/clock.h"

namespace holdfast::world {

struct ProcStat {
  char state = '?';
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  Nanos cpu{};  ///< user plus system, in ticks of 10 ms
};

/// Of the text of /proc/PID/stat. Errors: BadInput.
Result<ProcStat> parse_proc_stat(const std::string& text);
/// Errors: NotFound (no such process).
Result<ProcStat> read_proc_stat(pid_t pid);
/// Our direct children, zombies too.
std::vector<pid_t> children_of_ours();
/// A variable of the environment that `pid` was started with.
std::optional<std::string> started_with(pid_t pid, const std::string& name);

}  // namespace holdfast::world
