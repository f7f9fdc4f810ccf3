// The line that a person at a terminal sees change: step, epoch, what the run is doing, what was lost.
#pragma once

#include <string>

#include "run/report.h"
#include "world/clock.h"

namespace holdfast::app {

struct LiveView {
  run::Mode mode = run::Mode::Starting;
  run::RunRecord record;
};

/// One row a rank is too much for a screen with hundreds: a row for the run, and one for each of its last three faults.
/// No longer than `width` each.
std::string live_table(const LiveView& view, std::size_t width);

}  // namespace holdfast::app
