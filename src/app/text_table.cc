#include "app/text_table.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace holdfast::app {
namespace {

/// Characters, not bytes: every byte of UTF-8 but those that go on with one.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char each) { return (static_cast<unsigned char>(each) & 0xC0) != 0x80; }));
}

}  // namespace

std::string size_text(std::uint64_t bytes) {
  constexpr std::array units = {"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1000 && unit + 1 < units.size(); ++unit) value /= 1000;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.2f %s", value, units.at(unit));
  return text.data();
}

std::string printable(const std::string& text) {
  std::string shown = text;
  std::replace_if(
      shown.begin(), shown.end(), [](char each) { return static_cast<unsigned char>(each) < ' ' || each == 127; }, '?');
  return shown;
}

std::string text_table(const std::vector<std::vector<std::string>>& rows, const std::vector<std::size_t>& right) {
  std::vector<std::size_t> widths(rows.empty() ? 0 : rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - width(row[i]), ' ');
      const bool to_the_right = std::find(right.begin(), right.end(), i) != right.end();
      line += (i == 0 ? "" : "  ") + (to_the_right ? blanks + printable(row[i]) : printable(row[i]) + blanks);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

}  // namespace holdfast::app
