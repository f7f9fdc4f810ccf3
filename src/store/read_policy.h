// How the data of a tensor file is read.
#pragma once

#include <atomic>
#include <cstdint>

namespace holdfast::store {

struct ReadPolicy {
  unsigned threads = 1;
  bool checked = true;                         ///< false: trusts the file, whatever its checksums say
  std::atomic<std::uint64_t>* done = nullptr;  ///< counts bytes as they arrive
  const std::atomic<bool>* stopped = nullptr;  ///< once true, reading ends with an error
};

}  // namespace holdfast::store
