// The command `holdfast`.
#include <CLI/CLI.hpp>

#include "app/commands.h"
#include "run/coordinator.h"
#include "run/version.h"

int main(int argc, char** argv) {
  CLI::App app("Keeps a distributed training job making progress through its faults.", "holdfast");
  app.set_version_flag("--version", holdfast::run::kVersion);
  app.require_subcommand(1);
  app.footer("Examples:\n  holdfast demo\n  holdfast run --nproc-per-node 4 train.py\n");
  int exit_code = 0;
  holdfast::app::add_run(app, exit_code);
  holdfast::app::add_demo(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? holdfast::run::kExitDone : holdfast::run::kExitUsage;
  }
  return exit_code;
}
