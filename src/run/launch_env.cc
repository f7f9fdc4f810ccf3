#include "run/launch_env.h"

#include <cstdlib>

namespace holdfast::run {

std::string error_file(const RunOptions& options, WorkerId worker) {
  return options.run_dir + "/error-" + std::to_string(worker) + ".json";
}

Env worker_env(const RunOptions& options, const LaunchFacts& facts, WorkerId worker) {
  Env env{
      {"HOLDFAST_RUN_ID", options.run_id},
      {"HOLDFAST_WORKER", std::to_string(worker)},
      {"HOLDFAST_ADDRESS", facts.address},
      {"HOLDFAST_SECRET", options.secret},
      {"HOLDFAST_AGENT_PID", std::to_string(facts.agent_pid)},
      {"TORCHELASTIC_ERROR_FILE", error_file(options, worker)},
      {"TORCHELASTIC_RUN_ID", options.run_id},
      {"PET_RDZV_ID", options.run_id},
  };
  // A rank's share of the cores is the user's to set; torchrun's default for several ranks is one thread.
  const char* threads = std::getenv("OMP_NUM_THREADS");
  env["OMP_NUM_THREADS"] = threads != nullptr ? threads : "1";
  if (options.bind.loopback() && std::getenv("GLOO_SOCKET_IFNAME") == nullptr) env["GLOO_SOCKET_IFNAME"] = "lo";
  return env;
}

Env rank_env(const RunOptions& options, const LaunchFacts& facts, Rank rank, int restart_count) {
  const std::string world = std::to_string(options.policy.world_size);
  const std::string number = std::to_string(rank);
  return {
      {"RANK", number},
      {"LOCAL_RANK", number},
      {"WORLD_SIZE", world},
      {"LOCAL_WORLD_SIZE", world},
      {"GROUP_RANK", "0"},
      {"GROUP_WORLD_SIZE", "1"},
      {"ROLE_RANK", number},
      {"ROLE_WORLD_SIZE", world},
      {"ROLE_NAME", "default"},
      {"MASTER_ADDR", "127.0.0.1"},
      {"MASTER_PORT", std::to_string(facts.store_port)},
      {"TORCHELASTIC_RESTART_COUNT", std::to_string(restart_count)},
      {"TORCHELASTIC_MAX_RESTARTS", std::to_string(options.policy.max_restarts)},
      {"TORCHELASTIC_USE_AGENT_STORE", facts.agent_store ? "True" : "False"},
      {"PET_NPROC_PER_NODE", world},
      {"PET_NNODES", "1"},
      {"PET_NODE_RANK", "0"},
  };
}

}  // namespace holdfast::run
