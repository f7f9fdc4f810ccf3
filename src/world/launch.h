// Starting a program: one fork and exec with everything a child of ours needs set up.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace holdfast::world {

struct Launch {
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;  ///< added to ours
  std::string cwd;
  int out = -1;  ///< becomes descriptor 1; -1 keeps ours
  int err = -1;
  std::vector<int> keep;  ///< further descriptors the child gets, under the same numbers
  bool die_with_us = true;
};

/// The pid of a running program, leader of a session and process group of its own, signals at their defaults. It gets
/// no descriptor of ours but those named. Errors: NotFound and Denied (the program), Unavailable.
Result<pid_t> launch(const Launch& what);

}  // namespace holdfast::world
