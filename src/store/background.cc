#include "store/background.h"

#include "world/parallel.h"

namespace holdfast::store {

void run_in_background(std::span<const TensorData> tensors, const std::function<void()>& write) {
  std::uint64_t bytes = 0;
  for (const TensorData& tensor : tensors) bytes += tensor.bytes.size();
  if (bytes < kGivesWayFrom) {
    write();
  } else {
    world::giving_way(write);
  }
}

}  // namespace holdfast::store
