// The flags that say where a key is: in a file, in the environment, or told by a command.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "store/seal_key.h"

namespace CLI {
class App;
}

namespace holdfast::app {

struct KeyFlags {
  std::string prefix;  ///< "--key" or "--new-key"
  std::string file, env, command;
};

/// Adds --key-file, --key-env and --key-command, or those of another prefix, which write into `flags`.
void add_key_flags(CLI::App& command, KeyFlags& flags, const std::string& whose);

/// None where no flag was given. Errors: BadInput (several were; the file can be read by others; the command fails;
/// what they give is no key).
Result<std::optional<store::SealKey>> read_key(const KeyFlags& flags);

/// Errors: BadInput also where no flag was given.
Result<store::SealKey> need_key(const KeyFlags& flags);

}  // namespace holdfast::app
