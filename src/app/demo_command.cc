// `holdfast demo`: the main job, without faults and with them, side by side. The work is in the Python package.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <vector>

#include "app/command_line.h"
#include "app/commands.h"
#include "base/log.h"
#include "run/coordinator.h"

namespace holdfast::app {
namespace {

// The demo starts `holdfast run` by itself: with this very binary.
int exec_demo(std::vector<std::string> arguments) {
  std::error_code error;
  const std::string here = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (!error) ::setenv("HOLDFAST_BINARY", here.c_str(), 1);
  std::vector<std::string> words = {default_python(), "-m", "holdfast.demo"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  log_error("cannot start " + words[0] + "; set HOLDFAST_PYTHON to a Python that has the package holdfast");
  return run::kExitFailed;
}

}  // namespace

void add_demo(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("demo", "Train a small model twice, without faults and through a dozen of them");
  command->prefix_command();
  command->set_help_flag();  // the Python side knows the options
  command->callback([command, &exit_code] { exit_code = exec_demo(command->remaining()); });
}

}  // namespace holdfast::app
