// Chance.
#pragma once

#include <cstdint>

namespace holdfast::world {

class Random {
 public:
  virtual ~Random() = default;
  /// Uniform over all 64-bit values. The real one is fit for secrets; the simulated one replays from its seed.
  virtual std::uint64_t next() = 0;
};

}  // namespace holdfast::world
