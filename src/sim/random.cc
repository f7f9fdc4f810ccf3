// SplitMix64: one word of state, so that thousands of streams cost nothing.
#include "sim/random.h"

namespace holdfast::sim {

namespace {
constexpr std::uint64_t kStride = 0x9e3779b97f4a7c15;
}

std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111eb;
  return value ^ (value >> 31U);
}

std::uint64_t SimRandom::next() {
  state_ += kStride;
  return mix(state_);
}

bool SimRandom::chance(double probability) {
  if (probability <= 0) return false;
  return static_cast<double>(next() >> 11U) * 0x1p-53 < probability;
}

std::uint64_t SimRandom::below(std::uint64_t limit) { return limit == 0 ? 0 : next() % limit; }

Nanos SimRandom::draw(const Delay& delay) {
  if (delay.max <= delay.min) return delay.min;
  return delay.min +
         Nanos(static_cast<std::int64_t>(below(static_cast<std::uint64_t>((delay.max - delay.min).count()) + 1)));
}

SimRandom SimRandom::split(std::uint64_t tag) const { return SimRandom(mix(state_ ^ mix(tag + kStride))); }

}  // namespace holdfast::sim
