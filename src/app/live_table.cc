#include "app/live_table.h"

#include <algorithm>
#include <cstdio>

namespace holdfast::app {
namespace {

const char* mode_word(run::Mode mode) {
  switch (mode) {
    case run::Mode::Starting: return "starting";
    case run::Mode::Running: return "training";
    case run::Mode::Recovering: return "gathering ranks";
    case run::Mode::Restoring: return "restoring state";
    case run::Mode::Restarting: return "restarting";
    case run::Mode::After: return "after the loop";
    case run::Mode::Ended: return "ended";
  }
  return "";
}

std::string row(std::string text, std::size_t width) {
  if (text.size() > width) text = text.substr(0, width);
  return text + "\n";
}

}  // namespace

std::string live_table(const LiveView& view, std::size_t width) {
  constexpr std::size_t kFaultsShown = 3;
  const run::RunRecord& record = view.record;
  char head[160];
  const double wall = std::chrono::duration<double>(record.ended_at - record.began_at).count();
  std::snprintf(head, sizeof head, "%7.0f s  step %lld  %s  %u ranks  epoch %llu  faults %zu  redone %llu  ETTR %.3f",
                wall, static_cast<long long>(record.steps), mode_word(view.mode), record.world_size,
                static_cast<unsigned long long>(record.epochs), record.faults.size(),
                static_cast<unsigned long long>(record.steps_redone), record.ettr);
  std::string table = row(head, width);
  const std::size_t shown = std::min(kFaultsShown, record.faults.size());
  for (auto fault = record.faults.end() - static_cast<std::ptrdiff_t>(shown); fault != record.faults.end(); ++fault) {
    table += row("           " + run::fault_line(*fault, std::nullopt), width);
  }
  return table;
}

}  // namespace holdfast::app
