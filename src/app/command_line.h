// What is to be run: which Python, which script, which arguments.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace holdfast::app {

struct Program {
  std::string interpreter;           ///< "" where it is not a Python script
  std::vector<std::string> command;  ///< script and arguments, "-m" module and arguments, or any program
};

/// `words`: what follows the options. `module`: -m was given among them. `our_python`: for scripts named without one.
/// Errors: BadInput (nothing to run; a word that looks like a misspelt option).
Result<Program> find_program(const std::vector<std::string>& words, bool module, const std::string& our_python);

/// HOLDFAST_PYTHON, else the Python beside this binary, else the one of the build, else "python3".
std::string default_python();

}  // namespace holdfast::app
