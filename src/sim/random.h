// Chance that replays: the same seed gives the same draws, on every machine.
#pragma once

#include <cstdint>

#include "world/clock.h"
#include "world/random.h"

namespace holdfast::sim {

using world::Nanos;

/// A span of time to draw from, both ends included.
struct Delay {
  Nanos min{};
  Nanos max{};
};

class SimRandom final : public world::Random {
 public:
  explicit SimRandom(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() override;
  /// True with this probability. Draws nothing where it is 0, so that a fault switched off shifts no other draw.
  bool chance(double probability);
  /// 0 .. limit - 1; 0 where `limit` is 0.
  std::uint64_t below(std::uint64_t limit);
  Nanos draw(const Delay& delay);
  /// A stream of its own: what is drawn from it shifts nothing here.
  SimRandom split(std::uint64_t tag) const;

 private:
  std::uint64_t state_;
};

/// Spreads the bits of `value` over all 64.
std::uint64_t mix(std::uint64_t value);

}  // namespace holdfast::sim
