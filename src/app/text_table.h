// Tables and sizes for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::app {

/// "1.20 MB"; "7 B".
std::string size_text(std::uint64_t bytes);

/// Names come from files: what would move the cursor or break the line becomes "?".
std::string printable(const std::string& text);

/// Rows of the same length, the first of them the heads; columns as wide as they need, two spaces apart, one line a
/// row. `right`: columns that are aligned to the right.
std::string text_table(const std::vector<std::vector<std::string>>& rows, const std::vector<std::size_t>& right = {});

}  // namespace holdfast::app
