// The options of `holdfast run`: torchrun's spellings for what torchrun has, our own for the rest.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "run/options.h"

namespace CLI {
class App;
}

namespace holdfast::app {

/// As written on the command line.
struct RunFlags {
  std::string nproc = "1";
  std::string nnodes = "1";
  int max_restarts = 3;
  bool standalone = false;
  bool module = false;
  bool no_python = false;
  std::string log_dir, redirects = "0", tee = "0";
  std::string rdzv_backend, rdzv_endpoint, rdzv_id, rdzv_conf, master_addr, master_port, node_rank, role,
      monitor_interval, start_method, local_addr;  // accepted for one machine, where they change nothing

  std::uint32_t spares = 1;
  std::vector<std::string> preload;
  std::string spawn = "auto";
  std::string ckpt_dir;
  std::int64_t ckpt_every_steps = 0;
  std::string ckpt_every_s = "0";
  std::uint32_t ckpt_keep = 2;
  std::string grace = "30s";
  std::string slow_ranks = "report";
  std::string faults, report;
  bool quiet = false;
  bool no_prefix = false;
  std::string bind = "127.0.0.1";
  std::string secret_file;
  std::int64_t seed = 0;
  int no_progress_max = 3;
  std::string start_timeout, compile_timeout, train_timeout, evaluate_timeout, checkpoint_timeout, group_timeout;
  std::vector<std::string> words;  ///< what is to be run
};

void declare_run_flags(CLI::App& command, RunFlags& flags);
/// Errors: BadInput, in one line with the mend.
Result<run::RunOptions> options_from(const RunFlags& flags);

}  // namespace holdfast::app
