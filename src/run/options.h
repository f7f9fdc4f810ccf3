// What `holdfast run` was asked to do.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "run/coordinator.h"
#include "run/fault_plan.h"
#include "telemetry/deadlines.h"
#include "telemetry/straggler.h"
#include "world/net.h"
#include "world/processes.h"

namespace holdfast::run {

enum class SpawnWay : std::uint8_t {
  Auto,     ///< fork where that is safe, else standby
  Fork,     ///< from a fork server that has imported torch
  Standby,  ///< a fresh interpreter for each
};

/// Which of a rank's streams, as torchrun's --redirects and --tee spell it: 0 none, 1 out, 2 err, 3 both; by rank or
/// for all.
struct StreamChoice {
  int all = 0;
  std::map<Rank, int> by_rank;
  int of(Rank rank) const {
    const auto found = by_rank.find(rank);
    return found == by_rank.end() ? all : found->second;
  }
};

struct RunOptions {
  std::vector<std::string> command;  ///< script and arguments, or -m module and arguments, or any program
  std::string interpreter;           ///< the Python that runs it; "" where `command` is not Python
  SpawnWay spawn = SpawnWay::Auto;
  std::vector<std::string> preload;  ///< modules the fork server imports besides torch

  CoordinatorPolicy policy;
  telemetry::DeadlinePolicy deadlines;
  telemetry::StragglerPolicy straggler;
  bool replace_slow = false;
  world::Nanos grace = std::chrono::seconds(30);  ///< stop request to SIGKILL

  std::string run_id;
  std::string run_dir;  ///< ours alone (0700), removed at the end
  std::string secret;
  world::Address bind{"127.0.0.1", 0};
  std::int64_t seed = 0;

  std::string ckpt_dir;  ///< "" : inside run_dir, gone with the run
  std::int64_t ckpt_every_steps = 0;
  world::Nanos ckpt_every{0};  ///< 0: never by time
  std::uint32_t ckpt_keep = 2;

  std::string log_dir;
  StreamChoice redirects, tee;
  bool prefix = true;

  std::vector<PlannedFault> faults;
  std::string report_path;
  bool quiet = false;  ///< no table that changes on the terminal

  /// Where people read: standard output and error of the launcher.
  std::function<void(world::Stream, std::string_view)> print;
};

}  // namespace holdfast::run
