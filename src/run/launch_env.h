// The environment a rank finds: torchrun's names (so its scripts run unchanged) and our own.
#pragma once

#include <map>
#include <string>

#include "run/options.h"

namespace holdfast::run {

struct LaunchFacts {
  std::string address;           ///< the agent's, host:port
  std::uint16_t store_port = 0;  ///< of the store for scripts that call init_process_group themselves
  bool agent_store = true;       ///< somebody else than rank 0 hosts that store
  pid_t agent_pid = 0;
};

using Env = std::map<std::string, std::string>;

/// For every worker, spare or rank: how to reach the agent, thread counts, where to leave an error.
Env worker_env(const RunOptions& options, const LaunchFacts& facts, WorkerId worker);
/// What a rank needs to know of its place; a spare gets it when it is promoted.
Env rank_env(const RunOptions& options, const LaunchFacts& facts, Rank rank, int restart_count);
/// File a worker's uncaught exception is written to (torchelastic's JSON).
std::string error_file(const RunOptions& options, WorkerId worker);

}  // namespace holdfast::run
