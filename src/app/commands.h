// The subcommands. Each adds itself to the command line and, when chosen, leaves its exit code.
#pragma once

namespace CLI {
class App;
}

namespace holdfast::app {

void add_run(CLI::App& app, int& exit_code);
void add_demo(CLI::App& app, int& exit_code);

}  // namespace holdfast::app
