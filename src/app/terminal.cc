#include "app/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace holdfast::app {

bool Terminal::usable() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1 && kind != nullptr &&
         std::string_view(kind) != "dumb";
}

std::size_t Terminal::width() const {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 10 ? size.ws_col - 1u : 79u;
}

void Terminal::erase() {
  if (!drawn_) return;
  const auto lines = std::count(table_.begin(), table_.end(), '\n');
  std::fprintf(stderr, "\r\033[%ldA\033[J", static_cast<long>(lines));
  drawn_ = false;
}

void Terminal::print(std::FILE* stream, std::string_view text) {
  erase();
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
  if (!table_.empty()) draw();
}

void Terminal::show(const std::string& table) {
  erase();
  table_ = table;
  draw();
}

void Terminal::draw() {
  std::fwrite(table_.data(), 1, table_.size(), stderr);
  std::fflush(stderr);
  drawn_ = !table_.empty();
}

}  // namespace holdfast::app
