#include "world/shared_memory.h"

#include <sys/mman.h>

#include <cerrno>

#include "base/check.h"
#include "world/os_error.h"

namespace holdfast::world {

Result<std::unique_ptr<SharedMemory>> RealSharedMemory::make(std::size_t bytes) {
  const std::string doing = "make " + std::to_string(bytes) + " bytes of shared memory";
  Fd fd(::memfd_create("holdfast-ring", MFD_CLOEXEC));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return os_error(errno, doing);
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) return os_error(errno, doing);
  return std::unique_ptr<SharedMemory>(
      new RealSharedMemory(std::move(fd), std::span(static_cast<std::byte*>(at), bytes)));
}

RealSharedMemory::~RealSharedMemory() { ::munmap(bytes_.data(), bytes_.size()); }

int ring_fd(const SpawnSpec& spec) {
  if (spec.ring == nullptr) return -1;
  const auto* memory = dynamic_cast<const RealSharedMemory*>(spec.ring);
  CHECK(memory != nullptr);
  return memory->fd();
}

}  // namespace holdfast::world
