// `holdfast run`: a training script as N ranks that survive their faults.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "app/commands.h"
#include "app/front.h"
#include "app/live_table.h"
#include "app/run_flags.h"
#include "app/secret.h"
#include "app/terminal.h"
#include "base/log.h"
#include "run/agent.h"
#include "world/real_world.h"

namespace holdfast::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExamples =
    "Exit codes: 0 done; 1 the script failed; 2 wrong usage; 75 stopped as asked, start again to go on;\n"
    "93 no progress, starting again would not help.\n\n"
    "Examples:\n"
    "  holdfast run --nproc-per-node 4 train.py --lr 0.1\n"
    "  holdfast run --nproc-per-node 4 --ckpt-dir ckpt --ckpt-every-steps 100 train.py\n"
    "  holdfast run --nproc-per-node 2 -m package.train\n"
    "  holdfast run --nproc-per-node 2 --report run.json -- python3 train.py\n";

std::string hex(std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

constexpr auto kRefresh = std::chrono::milliseconds(500);

std::FILE* file_of(world::Stream stream) { return stream == world::Stream::Out ? stdout : stderr; }

void print(world::Stream stream, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), file_of(stream));
  std::fflush(file_of(stream));
}

void refresh(world::World& world, const run::Agent& agent, Terminal& terminal) {
  terminal.show(live_table({agent.coordinator().mode(), agent.record()}, terminal.width()));
  world.loop().call_after(kRefresh, [&] { refresh(world, agent, terminal); });
}

Result<std::string> make_run_dir() {
  std::error_code error;
  std::string path = (fs::temp_directory_path(error) / "holdfast-XXXXXX").string();
  if (error || ::mkdtemp(path.data()) == nullptr) {
    return Error(Code::Unavailable,
                 "cannot make a folder for the run in " + path + "; set TMPDIR to one that can be written");
  }
  return path;
}

int report_failure(const Error& error) {
  log_error(error.message());
  return error.code() == Code::BadInput ? run::kExitUsage : run::kExitFailed;
}

void listen_to_signals(world::World& world, run::Agent& agent) {
  const auto stop_on = [&](int number, const char* name) {
    world.processes().on_signal(number, [&agent, name] { agent.request_stop(name); });
  };
  stop_on(SIGTERM, "SIGTERM");
  stop_on(SIGINT, "SIGINT");
  stop_on(SIGUSR1, "SIGUSR1");
  stop_on(SIGHUP, "SIGHUP");
  world.processes().on_signal(front_died_signal(), [&world] {
    world.processes().kill_all(std::chrono::seconds(1));
    ::_exit(run::kExitFailed);
  });
}

int run_agent(run::RunOptions options, const std::string& secret_file) {
  const auto world = world::make_real_world({.subreaper = true});
  auto secret = run_secret(options.bind, secret_file, world->random());
  if (!secret) return report_failure(secret.error());
  options.secret = *std::move(secret);
  if (options.run_id.empty() || options.run_id == "none") options.run_id = hex(world->random().next());
  auto run_dir = make_run_dir();
  if (!run_dir) return report_failure(run_dir.error());
  options.run_dir = *run_dir;
  if (options.ckpt_dir.empty()) options.ckpt_dir = options.run_dir + "/ckpt";
  if (options.log_dir.empty()) options.log_dir = fs::absolute("holdfast-logs-" + options.run_id).string();
  Terminal terminal;
  const bool live = Terminal::usable() && !options.quiet;
  options.print = print;
  if (live) {
    options.print = [&](world::Stream stream, std::string_view text) { terminal.print(file_of(stream), text); };
    log_preceded_by([&] { terminal.erase(); });
  }

  auto agent = std::make_unique<run::Agent>(*world, std::move(options));
  listen_to_signals(*world, *agent);
  const Status started = agent->start();
  if (live) refresh(*world, *agent, terminal);
  if (started) world->loop().run();
  log_preceded_by({});
  terminal.erase();
  const int code = started ? agent->exit_code() : report_failure(started.error());
  agent.reset();
  std::error_code ignored;
  fs::remove_all(*run_dir, ignored);
  return code;
}

}  // namespace

void add_run(CLI::App& app, const std::vector<std::string>& after_dashes, int& exit_code) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command = app.add_subcommand("run", "Run a training script as N ranks that survive their faults");
  command->prefix_command();
  command->footer(kExamples);
  declare_run_flags(*command, *flags);
  command->callback([command, flags, &after_dashes, &exit_code] {
    flags->words = command->remaining();
    flags->words.insert(flags->words.end(), after_dashes.begin(), after_dashes.end());
    log_quiet(flags->quiet);
    auto options = options_from(*flags);
    if (!options) {
      exit_code = report_failure(options.error());
      return;
    }
    const std::string secret_file = flags->secret_file;
    exit_code = run_behind_front([&] { return run_agent(*std::move(options), secret_file); });
  });
}

}  // namespace holdfast::app
