#include "app/command_line.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <regex>

namespace holdfast::app {

Result<Program> find_program(const std::vector<std::string>& given, bool module, const std::string& our_python) {
  std::vector<std::string> words = given;
  if (!words.empty() && words.front() == "--") words.erase(words.begin());
  if (words.empty()) {
    return Error(Code::BadInput, "nothing to run; name a script, as in: holdfast run --nproc-per-node 4 train.py");
  }
  if (module) {
    words.insert(words.begin(), "-m");
    return Program{our_python, words};
  }
  if (words.front().starts_with("-")) {
    return Error(Code::BadInput, "unknown option " + words.front() + "; see holdfast run --help");
  }
  if (words.front().ends_with(".py")) return Program{our_python, words};
  static const std::regex kPython(R"((.*/)?python[0-9.]*)");
  if (!std::regex_match(words.front(), kPython)) return Program{"", words};
  // Unbuffered output is what ranks have anyway; any other flag of Python's own needs a Python of its own.
  std::size_t next = 1;
  while (next < words.size() && words[next] == "-u") ++next;
  if (next == words.size() || (words[next].starts_with("-") && words[next] != "-m")) return Program{"", words};
  return Program{words.front(), {words.begin() + static_cast<std::ptrdiff_t>(next), words.end()}};
}

std::string default_python() {
  if (const char* named = std::getenv("HOLDFAST_PYTHON"); named != nullptr && *named != '\0') return named;
  std::error_code error;
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const auto& python : {here / "python3", here / "../venv/bin/python3"}) {
    if (!error && ::access(python.c_str(), X_OK) == 0) return python.string();
  }
  return "python3";
}

}  // namespace holdfast::app
