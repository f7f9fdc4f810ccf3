// SharedMemory on a memfd.
#pragma once

#include <memory>

#include "world/fd.h"
#include "world/processes.h"

namespace holdfast::world {

class RealSharedMemory final : public SharedMemory {
 public:
  static Result<std::unique_ptr<SharedMemory>> make(std::size_t bytes);
  ~RealSharedMemory() override;
  RealSharedMemory(const RealSharedMemory&) = delete;
  RealSharedMemory& operator=(const RealSharedMemory&) = delete;
  std::span<std::byte> bytes() override { return bytes_; }
  int fd() const { return fd_.get(); }

 private:
  RealSharedMemory(Fd fd, std::span<std::byte> bytes) : fd_(std::move(fd)), bytes_(bytes) {}
  Fd fd_;
  std::span<std::byte> bytes_;
};

/// The descriptor behind a spec's ring; -1 where it has none. CHECKs that the real world made it.
int ring_fd(const SpawnSpec& spec);

}  // namespace holdfast::world
