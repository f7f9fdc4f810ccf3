#include "world/proc_files.h"

#include <dirent.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <memory>
#include <sstream>

namespace holdfast::world {
namespace {

std::optional<std::string> whole_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) return std::nullopt;
  return text.str();
}

/// The names in a /proc directory that are numbers.
std::vector<pid_t> numbers_in(const std::string& path) {
  std::vector<pid_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(path.c_str()), &::closedir);
  while (dir != nullptr) {
    const dirent* entry = ::readdir(dir.get());
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    pid_t number = 0;
    const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (failure == std::errc{} && end == name.data() + name.size()) numbers.push_back(number);
  }
  return numbers;
}

/// For kernels built without the children files: everybody who calls us parent.
std::vector<pid_t> children_by_search() {
  std::vector<pid_t> children;
  for (const pid_t pid : numbers_in("/proc")) {
    const auto stat = read_proc_stat(pid);
    if (stat && stat->parent == ::getpid()) children.push_back(pid);
  }
  return children;
}

}  // namespace

Result<ProcStat> parse_proc_stat(const std::string& text) {
  const auto name_end = text.rfind(')');  // the name may hold blanks and brackets
  if (name_end == std::string::npos) return Error(Code::BadInput, "not the text of a stat file");
  std::istringstream fields(text.substr(name_end + 1));
  ProcStat stat;
  std::string skipped;
  fields >> stat.state >> stat.parent >> stat.group >> stat.session;
  for (int i = 0; i < 7; ++i) fields >> skipped;  // terminal, its group, flags, four fault counts
  long user_ticks = 0;
  long system_ticks = 0;
  fields >> user_ticks >> system_ticks;
  if (!fields) return Error(Code::BadInput, "not the text of a stat file");
  stat.cpu = Nanos(std::chrono::seconds(1)) * (user_ticks + system_ticks) / ::sysconf(_SC_CLK_TCK);
  return stat;
}

Result<ProcStat> read_proc_stat(pid_t pid) {
  const auto text = whole_file("/proc/" + std::to_string(pid) + "/stat");
  if (!text) return Error(Code::NotFound, "no process " + std::to_string(pid));
  return parse_proc_stat(*text);
}

std::vector<pid_t> children_of_ours() {
  std::vector<pid_t> children;
  for (const pid_t thread : numbers_in("/proc/self/task")) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/children");
    if (!file && thread == ::getpid()) return children_by_search();
    for (pid_t pid = 0; file >> pid;) children.push_back(pid);
  }
  return children;
}

std::optional<std::string> started_with(pid_t pid, const std::string& name) {
  const auto text = whole_file("/proc/" + std::to_string(pid) + "/environ");
  if (!text) return std::nullopt;
  const std::string wanted = name + "=";
  for (std::size_t at = 0; at < text->size();) {
    const std::size_t end = std::min(text->find('\0', at), text->size());
    if (text->compare(at, wanted.size(), wanted) == 0)
      return text->substr(at + wanted.size(), end - at - wanted.size());
    at = end + 1;
  }
  return std::nullopt;
}

}  // namespace holdfast::world
