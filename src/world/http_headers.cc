#include "world/http_headers.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace holdfast::world {
namespace {

constexpr std::size_t kHeadBytesMax = std::size_t{256} << 10U;
constexpr std::size_t kShownBytesMax = 200;

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

std::string lower(std::string_view text) {
  std::string low(text);
  std::transform(low.begin(), low.end(), low.begin(), [](char c) { return lower(c); });
  return low;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

}  // namespace

std::string_view HttpHead::header(std::string_view name) const {
  const auto found = std::find_if(headers_.rbegin(), headers_.rend(), [&](const Header& h) { return h.name == name; });
  return found == headers_.rend() ? std::string_view() : std::string_view(found->value);
}

void HttpHead::take(std::string_view line) {
  line = trimmed(line);
  if (line.starts_with("HTTP/")) {
    const std::size_t space = line.find(' ');
    *this = HttpHead();
    if (space == std::string_view::npos) return;
    const auto status = parse_count(line.substr(space + 1, line.find(' ', space + 1) - space - 1));
    if (status && *status >= 100 && *status <= 999) status_ = static_cast<int>(*status);
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || bytes_ + line.size() > kHeadBytesMax) return;
  bytes_ += line.size();
  headers_.push_back({lower(line.substr(0, colon)), std::string(trimmed(line.substr(colon + 1)))});
}

std::optional<std::uint64_t> parse_count(std::string_view text) {
  std::uint64_t count = 0;
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto [stop, failure] = std::from_chars(begin, end, count);
  if (failure != std::errc() || stop != end) return std::nullopt;
  return count;
}

std::optional<ContentRange> parse_content_range(std::string_view value) {
  constexpr std::string_view unit = "bytes ";
  if (lower(value.substr(0, unit.size())) != unit) return std::nullopt;
  value.remove_prefix(unit.size());
  const std::size_t slash = value.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto size = parse_count(value.substr(slash + 1));
  const std::string_view range = value.substr(0, slash);
  if (!size) return std::nullopt;
  if (range == "*") return ContentRange{0, 0, *size};
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = parse_count(range.substr(0, dash));
  const auto last = parse_count(range.substr(dash + 1));
  if (!first || !last || *first > *last || *last >= *size) return std::nullopt;
  return ContentRange{*first, *last + 1, *size};
}

std::optional<std::chrono::seconds> parse_retry_after(std::string_view value) {
  const auto count = parse_count(value);
  constexpr std::uint64_t day = 86'400;
  if (!count) return std::nullopt;
  return std::chrono::seconds(std::min(*count, day));
}

std::string printable(std::string_view text) {
  std::string shown(text.substr(0, kShownBytesMax));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20U || static_cast<unsigned char>(c) >= 0x7fU) c = ' ';
  }
  if (text.size() > kShownBytesMax) shown += "...";
  return shown;
}

}  // namespace holdfast::world
