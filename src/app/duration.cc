#include "app/duration.h"

#include <charconv>
#include <map>

namespace holdfast::app {

Result<world::Nanos> parse_duration(const std::string& text) {
  static const std::map<std::string, double> kUnits = {{"", 1}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto unit = kUnits.find(std::string(end, text.data() + text.size()));
  constexpr double kYear = 365.0 * 86'400;
  if (error != std::errc{} || unit == kUnits.end() || !(number >= 0) || number * unit->second > kYear) {
    return Error(Code::BadInput, "\"" + text + "\" is no duration; write 30, 1.5s, 250ms, 5m or 2h");
  }
  return std::chrono::duration_cast<world::Nanos>(std::chrono::duration<double>(number * unit->second));
}

}  // namespace holdfast::app
