// Copies of large memory by several threads, at what the memory takes.
#pragma once

#include <cstddef>
#include <span>

#include "base/bytes.h"

namespace holdfast::world {

struct MemoryCopy {
  std::byte* to = nullptr;
  BytesView from;
};

/// No two may overlap. What is copied is not brought into the caches, where it would drive out what others work with.
void copy_all(std::span<const MemoryCopy> copies, unsigned threads);

}  // namespace holdfast::world
