// Time as the rest of Holdfast sees it.
#pragma once

#include <chrono>

namespace holdfast::world {

using Nanos = std::chrono::nanoseconds;

class Clock {
 public:
  virtual ~Clock() = default;
  /// Since some fixed moment; never jumps. CLOCK_MONOTONIC, so it compares with marks of other processes here.
  virtual Nanos steady() = 0;
  /// Since 1970-01-01 UTC; may jump either way. For people to read, never for deciding.
  virtual Nanos wall() = 0;
};

}  // namespace holdfast::world
