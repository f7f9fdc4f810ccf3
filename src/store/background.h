// Writing a shard while a job computes: large ones behind whatever else wants the cores.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "store/tensor_data.h"

namespace holdfast::store {

/// Smaller shards are written as they come: that costs a job next to nothing, and on a machine that is never idle
/// waiting for a turn would take them many times as long.
constexpr std::uint64_t kGivesWayFrom = std::uint64_t{16} << 20U;

/// Runs `write`, on threads that give way (world/parallel.h) where `tensors` are large: not for the simulator. Blocks
/// until it is done.
void run_in_background(std::span<const TensorData> tensors, const std::function<void()>& write);

/// The outcome of `write`, which writes `tensors`.
template <typename Write>
auto in_background(std::span<const TensorData> tensors, Write write) {
  std::optional<decltype(write())> outcome;
  run_in_background(tensors, [&] { outcome = write(); });
  return *std::move(outcome);
}

}  // namespace holdfast::store
