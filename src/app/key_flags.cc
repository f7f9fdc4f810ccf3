#include "app/key_flags.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

namespace holdfast::app {
namespace {

constexpr std::size_t kReadBytesMax = 4096;  // far more than any spelling of a key takes

/// Up to kReadBytesMax, since what is longer is no key.
std::string read_all(std::FILE* from) {
  std::string text(kReadBytesMax, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), from));
  return text;
}

Result<std::string> from_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), &std::fclose);
  struct stat about{};
  if (file == nullptr || ::fstat(::fileno(file.get()), &about) != 0) {
    return Error(Code::BadInput, "it can't be read");
  }
  if ((about.st_mode & 077) != 0) return Error(Code::BadInput, "others can read this key; chmod 600 it");
  return read_all(file.get());
}

Result<std::string> from_env(const std::string& name) {
  const char* given = std::getenv(name.c_str());
  if (given == nullptr) {
    return Error(Code::BadInput, "the environment has none; put a key there, as hexadecimal digits or base64");
  }
  return std::string(given);
}

Result<std::string> from_command(const std::string& command) {
  // The flag is for a command line of the user's own.
  std::FILE* const pipe = ::popen(command.c_str(), "re");  // NOLINT(bugprone-command-processor)
  if (pipe == nullptr) return Error(Code::BadInput, "it can't be started");
  std::string printed = read_all(pipe);
  const int status = ::pclose(pipe);
  if (status != 0) return Error(Code::BadInput, "it failed instead of printing a key");
  return printed;
}

}  // namespace

void add_key_flags(CLI::App& command, KeyFlags& flags, const std::string& whose) {
  command.add_option(flags.prefix + "-file", flags.file, whose + ": a file that only its owner can read")
      ->type_name("FILE");
  command.add_option(flags.prefix + "-env", flags.env, whose + ": an environment variable")->type_name("NAME");
  command.add_option(flags.prefix + "-command", flags.command, whose + ": what a shell command prints")
      ->type_name("COMMAND");
}

Result<std::optional<store::SealKey>> read_key(const KeyFlags& flags) {
  using Key = std::optional<store::SealKey>;
  const int given = (flags.file.empty() ? 0 : 1) + (flags.env.empty() ? 0 : 1) + (flags.command.empty() ? 0 : 1);
  if (given == 0) return Key();
  if (given > 1) {
    return Error(Code::BadInput, "give one of " + flags.prefix + "-file, " + flags.prefix + "-env and " + flags.prefix +
                                     "-command, not several");
  }
  std::string where = flags.prefix + "-file " + flags.file;
  if (!flags.env.empty()) where = flags.prefix + "-env " + flags.env;
  if (!flags.command.empty()) where = flags.prefix + "-command " + flags.command;
  const std::string text = TRY(!flags.file.empty()  ? from_file(flags.file)
                               : !flags.env.empty() ? from_env(flags.env)
                                                    : from_command(flags.command),
                               where);
  return Key(TRY(store::parse_seal_key(as_bytes(text), flags.env.empty()), where));
}

Result<store::SealKey> need_key(const KeyFlags& flags) {
  std::optional<store::SealKey> key = TRY(read_key(flags), "key");
  if (key) return *std::move(key);
  return Error(Code::BadInput,
               "give a key: " + flags.prefix + "-file, " + flags.prefix + "-env or " + flags.prefix + "-command");
}

}  // namespace holdfast::app
