// The command `holdfast`.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "app/commands.h"
#include "run/coordinator.h"
#include "run/version.h"

int main(int argc, char** argv) {
  CLI::App app("Keeps a distributed training job making progress through its faults.", "holdfast");
  app.set_version_flag("--version", holdfast::run::kVersion);
  app.require_subcommand(1);
  app.footer(
      "Examples:\n  holdfast demo\n  holdfast run --nproc-per-node 4 train.py\n  holdfast tensors verify "
      "model.safetensors\n");
  // What follows a "--" is somebody else's command line.
  char** const dashes =
      std::find_if(argv, argv + argc, [](const char* word) { return std::string_view(word) == "--"; });
  const std::vector<std::string> after_dashes(std::min(dashes + 1, argv + argc), argv + argc);
  int exit_code = 0;
  holdfast::app::add_run(app, after_dashes, exit_code);
  holdfast::app::add_demo(app, exit_code);
  holdfast::app::add_ckpt(app, exit_code);
  holdfast::app::add_tensors(app, exit_code);
  try {
    app.parse(static_cast<int>(dashes - argv), argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? holdfast::run::kExitDone : holdfast::run::kExitUsage;
  }
  return exit_code;
}
