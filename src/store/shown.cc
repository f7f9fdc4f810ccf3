#include "store/shown.h"

#include <algorithm>

#include "store/json_text.h"

namespace holdfast::store {
namespace {

constexpr std::size_t kBytesMax = 200;

}  // namespace

std::string shown(std::string_view text) {
  std::string line(text.substr(0, kBytesMax));
  while (text.size() > kBytesMax && !line.empty() && (static_cast<unsigned char>(line.back()) & 0xC0U) == 0x80U) {
    line.pop_back();  // the cut went through a letter
  }
  if (text.size() > kBytesMax && !line.empty() && static_cast<unsigned char>(line.back()) >= 0xC0U) line.pop_back();
  const bool utf8 = json_quote(line).has_value();
  std::replace_if(
      line.begin(), line.end(),
      [&](char letter) {
        const auto byte = static_cast<unsigned char>(letter);
        return byte < 0x20U || byte == 0x7FU || (byte >= 0x80U && !utf8);
      },
      '?');
  return text.size() > kBytesMax ? line + "..." : line;
}

}  // namespace holdfast::store
