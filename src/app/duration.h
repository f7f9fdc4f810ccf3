// Durations as people write them: "30", "1.5s", "250ms", "5m", "2h". A bare number is seconds.
#pragma once

#include <string>

#include "base/result.h"
#include "world/clock.h"

namespace holdfast::app {

/// Errors: BadInput (not such a text, negative, over a year).
Result<world::Nanos> parse_duration(const std::string& text);

}  // namespace holdfast::app
