#include "app/run_flags.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "app/command_line.h"
#include "app/duration.h"

namespace holdfast::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTorchrun = "As torchrun";
constexpr const char* kRecovery = "Recovery";
constexpr const char* kCkpt = "Checkpoints";
constexpr const char* kShow = "Output";

void declare_torchrun(CLI::App& command, RunFlags& flags) {
  const auto add = [&](const char* name, std::string& value, const char* help) {
    command.add_option(name, value, help)->group(kTorchrun);
  };
  add("--nproc-per-node,--nproc_per_node", flags.nproc, "Ranks: a number, or gpu, cpu, auto");
  add("--nnodes", flags.nnodes, "Machines: 1");
  command
      .add_option("--max-restarts,--max_restarts", flags.max_restarts,
                  "Starts of all ranks after the first (in-place recoveries are not counted)")
      ->group(kTorchrun)
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_flag("--standalone", flags.standalone, "One machine (always so at present)")->group(kTorchrun);
  command.add_flag("-m,--module", flags.module, "What follows is a module, not a script")->group(kTorchrun);
  command.add_flag("--no-python,--no_python", flags.no_python, "What follows is a program, not a Python script")
      ->group(kTorchrun);
  add("--log-dir,--log_dir", flags.log_dir, "Folder for ranks' output files");
  add("-r,--redirects", flags.redirects, "Streams that go to files: 0 none, 1 out, 2 err, 3 both, or 0:1,1:2 by rank");
  add("-t,--tee", flags.tee, "Streams that go to files and here");
  add("--rdzv-id,--rdzv_id", flags.rdzv_id, "Name of the run");
  for (auto& [name, value] : std::initializer_list<std::pair<const char*, std::string*>>{
           {"--rdzv-backend,--rdzv_backend", &flags.rdzv_backend},
           {"--rdzv-endpoint,--rdzv_endpoint", &flags.rdzv_endpoint},
           {"--rdzv-conf,--rdzv_conf", &flags.rdzv_conf},
           {"--master-addr,--master_addr", &flags.master_addr},
           {"--master-port,--master_port", &flags.master_port},
           {"--node-rank,--node_rank", &flags.node_rank},
           {"--role", &flags.role},
           {"--monitor-interval,--monitor_interval", &flags.monitor_interval},
           {"--start-method,--start_method", &flags.start_method},
           {"--local-addr,--local_addr", &flags.local_addr}}) {
    command.add_option(name, *value, "Accepted; changes nothing on one machine")->group("");
  }
}

void declare_recovery(CLI::App& command, RunFlags& flags) {
  command.add_option("--spares", flags.spares, "Warm spare processes")->group(kRecovery)->capture_default_str();
  command.add_option("--preload", flags.preload, "Module that the fork server imports too (repeatable)")
      ->group(kRecovery)
      ->allow_extra_args(false);
  command.add_option("--spawn", flags.spawn, "How ranks start: fork, standby, or auto (fork where that is safe)")
      ->group(kRecovery)
      ->check(CLI::IsMember({"auto", "fork", "standby"}))
      ->capture_default_str();
  command.add_option("--grace", flags.grace, "From a stop request to SIGKILL")->group(kRecovery)->capture_default_str();
  command.add_option("--slow-ranks", flags.slow_ranks, "What to do about a slow rank: report or replace")
      ->group(kRecovery)
      ->check(CLI::IsMember({"report", "replace"}))
      ->capture_default_str();
  command
      .add_option("--no-progress-max", flags.no_progress_max, "Recoveries in a row without a new step; then exit 93")
      ->group(kRecovery)
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  const auto timeout = [&](const char* name, std::string& value, const char* help) {
    command.add_option(name, value, help)->group(kRecovery);
  };
  timeout("--start-timeout", flags.start_timeout, "From start to the step loop (10m)");
  timeout("--compile-timeout", flags.compile_timeout, "A step marked as compiling (30m)");
  timeout("--train-timeout", flags.train_timeout, "A step that holds up others (learned, 1s to 30m)");
  timeout("--evaluate-timeout", flags.evaluate_timeout, "Work between steps (learned, 60s to 2h)");
  timeout("--checkpoint-timeout", flags.checkpoint_timeout, "Blocking part of a checkpoint (learned, 60s to 2h)");
  timeout("--group-timeout", flags.group_timeout, "The process group's own; must be the longest (3h)");
  command.add_option("--bind", flags.bind, "Address the agent listens on")->group(kRecovery)->capture_default_str();
  command.add_option("--secret-file", flags.secret_file, "The run's secret (mode 0600); needed off loopback")
      ->group(kRecovery);
  command.add_option("--seed", flags.seed, "Base of all random streams")->group(kRecovery)->capture_default_str();
}

void declare_rest(CLI::App& command, RunFlags& flags) {
  command.add_option("--ckpt-dir", flags.ckpt_dir, "Where checkpoints live (default: a folder that ends with the run)")
      ->group(kCkpt);
  command.add_option("--ckpt-every-steps", flags.ckpt_every_steps, "Every so many steps; 0 never")
      ->group(kCkpt)
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("--ckpt-every-s", flags.ckpt_every_s, "Every so long; 0 never")
      ->group(kCkpt)
      ->capture_default_str();
  command.add_option("--ckpt-keep", flags.ckpt_keep, "Newest ones that stay")
      ->group(kCkpt)
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--report", flags.report, "Write the run's record here, as JSON")->group(kShow);
  command.add_option("--faults", flags.faults, "Act out the faults in this file (docs/add-a-fault.md)")->group(kShow);
  command.add_flag("--quiet", flags.quiet, "Warnings and errors only")->group(kShow);
  command.add_flag("--no-prefix", flags.no_prefix, "Ranks' lines without the rank before them")->group(kShow);
}

Result<std::uint32_t> rank_count(const std::string& text) {
  const auto gpus = [] {
    std::uint32_t count = 0;
    std::error_code error;
    while (fs::exists("/dev/nvidia" + std::to_string(count), error)) ++count;
    return count;
  };
  const std::uint32_t cpus = std::max(1u, std::thread::hardware_concurrency());
  if (text == "cpu") return cpus;
  if (text == "auto") return gpus() > 0 ? gpus() : cpus;
  if (text == "gpu") {
    if (gpus() > 0) return gpus();
    return Error(Code::BadInput, "--nproc-per-node gpu: this machine has no GPU");
  }
  std::uint32_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc{} || end != text.data() + text.size() || count < 1 || count > 1024) {
    return Error(Code::BadInput, "--nproc-per-node " + text + ": must be 1 to 1024, gpu, cpu or auto");
  }
  return count;
}

Result<run::StreamChoice> stream_choice(const std::string& flag, const std::string& text) {
  run::StreamChoice choice;
  const auto digit = [](const std::string& each) { return each.size() == 1 && each[0] >= '0' && each[0] <= '3'; };
  if (digit(text)) {
    choice.all = text[0] - '0';
    return choice;
  }
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t colon = part.find(':');
    Rank rank = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + std::min(colon, part.size()), rank);
    if (colon == std::string::npos || error != std::errc{} || end != part.data() + colon ||
        !digit(part.substr(colon + 1))) {
      return Error(Code::BadInput, flag + " " + text + ": write 0, 1, 2 or 3, or by rank as in 0:1,1:3");
    }
    choice.by_rank[rank] = part[colon + 1] - '0';
  }
  return choice;
}

Status set_deadlines(const RunFlags& flags, run::RunOptions& options) {
  using telemetry::Phase;
  const auto fix = [&](Phase phase, const std::string& text) -> Status {
    if (!text.empty()) options.deadlines.fixed[static_cast<std::size_t>(phase)] = TRY(parse_duration(text), "time-out");
    return Ok{};
  };
  if (!flags.start_timeout.empty()) {
    options.deadlines.start = TRY(parse_duration(flags.start_timeout), "--start-timeout");
    options.policy.start_patience = options.deadlines.start;
  }
  if (!flags.group_timeout.empty())
    options.deadlines.group_timeout = TRY(parse_duration(flags.group_timeout), "--group-timeout");
  (void)TRY(fix(Phase::Compile, flags.compile_timeout), "--compile-timeout");
  (void)TRY(fix(Phase::Train, flags.train_timeout), "--train-timeout");
  (void)TRY(fix(Phase::Evaluate, flags.evaluate_timeout), "--evaluate-timeout");
  (void)TRY(fix(Phase::Between, flags.evaluate_timeout), "--evaluate-timeout");
  (void)TRY(fix(Phase::Checkpoint, flags.checkpoint_timeout), "--checkpoint-timeout");
  return telemetry::check_ladder(options.deadlines);
}

Status set_faults(const std::string& file, run::RunOptions& options) {
  if (file.empty()) return Ok{};
  std::ifstream in(file);
  if (!in) return Error(Code::BadInput, "--faults " + file + ": can't be read");
  std::ostringstream text;
  text << in.rdbuf();
  options.faults = TRY(run::parse_fault_plan(file, text.str(), options.policy.world_size), "--faults");
  return Ok{};
}

std::string absolute(const std::string& path) {
  return path.empty() ? path : fs::absolute(path).lexically_normal().string();
}

}  // namespace

void declare_run_flags(CLI::App& command, RunFlags& flags) {
  declare_torchrun(command, flags);
  declare_recovery(command, flags);
  declare_rest(command, flags);
}

Result<run::RunOptions> options_from(const RunFlags& flags) {
  run::RunOptions options;
  if (flags.nnodes != "1" && flags.nnodes != "1:1") {
    return Error(Code::BadInput, "--nnodes " + flags.nnodes + ": several machines are not supported yet; use 1");
  }
  const Program program = TRY(find_program(flags.words, flags.module, default_python()), "holdfast run");
  const std::string& script = program.command.front();
  if (script.ends_with(".py") && !fs::is_regular_file(script)) {
    return Error(Code::BadInput, "script " + script + " is not there; looked in " + fs::current_path().string());
  }
  options.command = program.command;
  options.interpreter = flags.no_python ? "" : program.interpreter;
  options.policy.world_size = TRY(rank_count(flags.nproc), "holdfast run");
  options.policy.max_restarts = flags.max_restarts;
  options.policy.spares = flags.spares;
  options.policy.tries_without_progress = flags.no_progress_max;
  options.spawn = flags.spawn == "fork"      ? run::SpawnWay::Fork
                  : flags.spawn == "standby" ? run::SpawnWay::Standby
                                             : run::SpawnWay::Auto;
  options.preload = flags.preload;
  options.replace_slow = flags.slow_ranks == "replace";
  options.grace = TRY(parse_duration(flags.grace), "--grace");
  options.policy.restart_grace = std::min<world::Nanos>(options.policy.restart_grace, options.grace);
  (void)TRY(set_deadlines(flags, options), "holdfast run");
  options.ckpt_dir = absolute(flags.ckpt_dir);
  options.ckpt_every_steps = flags.ckpt_every_steps;
  options.ckpt_every = TRY(parse_duration(flags.ckpt_every_s), "--ckpt-every-s");
  options.ckpt_keep = flags.ckpt_keep;
  options.redirects = TRY(stream_choice("--redirects", flags.redirects), "holdfast run");
  options.tee = TRY(stream_choice("--tee", flags.tee), "holdfast run");
  options.log_dir = absolute(flags.log_dir);
  options.prefix = !flags.no_prefix;
  options.quiet = flags.quiet;
  options.report_path = absolute(flags.report);
  options.bind = {flags.bind, 0};
  options.seed = flags.seed;
  options.run_id = flags.rdzv_id;
  (void)TRY(set_faults(flags.faults, options), "holdfast run");
  return options;
}

}  // namespace holdfast::app
