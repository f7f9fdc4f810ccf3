// Which checkpoint: a step and the epoch that wrote it, and the name of its directory.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"

namespace holdfast::store {

/// Steps have 12 digits in a name, so that names sort.
constexpr Step kStepMax = 999'999'999'999;

/// The newer one is the one of the newer epoch: after a return to an older step the new history counts, not the one
/// that was given up.
struct CheckpointId {
  Epoch epoch = 0;
  Step step = kNoStep;
  friend auto operator<=>(const CheckpointId&, const CheckpointId&) = default;
};

/// "step-000000000050-epoch-3".
std::string checkpoint_name(CheckpointId id);
/// None for any other spelling.
std::optional<CheckpointId> parse_checkpoint_name(std::string_view name);

/// "fence-3": a file whose name alone counts, so no damaged byte can move the fence.
std::string fence_name(Epoch epoch);
std::optional<Epoch> parse_fence_name(std::string_view name);

}  // namespace holdfast::store
