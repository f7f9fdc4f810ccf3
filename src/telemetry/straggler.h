// Which ranks are slow? Judged by own work alone, which waiting for each other does not even out.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/ids.h"
#include "world/clock.h"

namespace holdfast::telemetry {

using world::Nanos;

/// One rank's own work in one step: StepBegin to GradsReady.
struct StepTiming {
  Rank rank = 0;
  Step step = 0;
  Nanos compute{0};
};

struct StragglerPolicy {
  double slowdown_max = 1.8;  ///< times the step's median; above it the step speaks against the rank
  std::size_t min_ranks = 3;  ///< fewer can't be told apart
  std::size_t window = 8;     ///< newest steps looked at
  std::size_t votes = 6;      ///< steps that must speak against a rank: one slow step convicts nobody
};

struct SlowRank {
  Rank rank = 0;
  double slowdown = 1;    ///< median over the window of own work by the step's median
  std::size_t votes = 0;  ///< steps that spoke against it
};

/// Slow ranks, slowest first. Steps with too few ranks do not vote; a rank that misses steps has fewer votes.
std::vector<SlowRank> slow_ranks(std::span<const StepTiming> timings, const StragglerPolicy& policy);

}  // namespace holdfast::telemetry
