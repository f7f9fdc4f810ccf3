// A table kept at the bottom of a terminal while lines scroll by above it.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace holdfast::app {

class Terminal {
 public:
  /// Whether both streams of ours go to one that understands cursor movement.
  static bool usable();
  std::size_t width() const;
  /// Prints above the table.
  void print(std::FILE* stream, std::string_view text);
  /// Replaces the table.
  void show(const std::string& table);
  /// Takes the table away until it is shown again.
  void erase();

 private:
  void draw();
  std::string table_;
  bool drawn_ = false;
};

}  // namespace holdfast::app
