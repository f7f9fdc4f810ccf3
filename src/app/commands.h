// The subcommands. Each adds itself to the command line and, when chosen, leaves its exit code.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace holdfast::app {

/// `after_dashes`: the words behind a "--", which outlive the parsing.
void add_run(CLI::App& app, const std::vector<std::string>& after_dashes, int& exit_code);
void add_demo(CLI::App& app, int& exit_code);
void add_ckpt(CLI::App& app, int& exit_code);
void add_tensors(CLI::App& app, int& exit_code);
/// Those that have to do with keys, below `tensors`.
void add_tensors_encrypt(CLI::App& tensors, int& exit_code);

}  // namespace holdfast::app
