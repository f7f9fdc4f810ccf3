#include "telemetry/straggler.h"

#include <algorithm>
#include <functional>
#include <map>

namespace holdfast::telemetry {
namespace {

using ByRank = std::map<Rank, Nanos>;

/// The lower one where there are two middles: half of the ranks being slow must not move it.
template <typename Value>
Value lower_median(std::vector<Value> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Nanos typical(const ByRank& step) {
  std::vector<Nanos> times;
  times.reserve(step.size());
  for (const auto& [rank, time] : step) times.push_back(time);
  return lower_median(std::move(times));
}

}  // namespace

std::vector<SlowRank> slow_ranks(std::span<const StepTiming> timings, const StragglerPolicy& policy) {
  std::map<Step, ByRank, std::greater<>> steps;
  for (const StepTiming& timing : timings) steps[timing.step][timing.rank] = timing.compute;

  std::map<Rank, std::vector<double>> ratios;
  std::size_t looked_at = 0;
  for (const auto& [step, ranks] : steps) {
    if (looked_at++ == policy.window) break;
    if (ranks.size() < policy.min_ranks || ranks.empty()) continue;
    const Nanos usual = typical(ranks);
    if (usual <= Nanos{0}) continue;
    for (const auto& [rank, time] : ranks) {
      ratios[rank].push_back(static_cast<double>(time.count()) / static_cast<double>(usual.count()));
    }
  }

  std::vector<SlowRank> slow;
  for (const auto& [rank, seen] : ratios) {
    const auto votes = std::count_if(seen.begin(), seen.end(), [&](double r) { return r > policy.slowdown_max; });
    if (static_cast<std::size_t>(votes) < std::max<std::size_t>(policy.votes, 1)) continue;
    slow.push_back({rank, lower_median(seen), static_cast<std::size_t>(votes)});
  }
  std::sort(slow.begin(), slow.end(), [](const auto& a, const auto& b) {
    return a.slowdown != b.slowdown ? a.slowdown > b.slowdown : a.rank < b.rank;
  });
  return slow;
}

}  // namespace holdfast::telemetry
