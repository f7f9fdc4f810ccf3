#include "world/memory_copy.h"

#include <gtest/gtest.h>

#include <vector>

namespace holdfast::world {
namespace {

Bytes numbered(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + i / 253);
  return bytes;
}

TEST(MemoryCopy, CopiesEveryByteAndNoOtherWhateverSizeAndPlace) {
  const Bytes from = numbered(9U << 20U);
  for (const std::size_t size : {0UL, 1UL, 63UL, 65'535UL, 65'536UL, 65'601UL, 4'194'304UL, 8'400'001UL}) {
    for (const std::size_t place : {0UL, 1UL, 63UL}) {
      Bytes to(size + 128, std::byte{7});
      const MemoryCopy copy{to.data() + place, BytesView(from).subspan(place + 5, size)};
      copy_all(std::span(&copy, 1), 1);
      Bytes expected(size + 128, std::byte{7});
      std::copy(copy.from.begin(), copy.from.end(), expected.begin() + static_cast<std::ptrdiff_t>(place));
      EXPECT_EQ(to, expected) << size << " bytes at " << place;
    }
  }
}

TEST(MemoryCopy, SharesManyOutAmongThreads) {
  const Bytes from = numbered(11U << 20U);
  Bytes to(from.size());
  std::vector<MemoryCopy> copies;
  for (std::size_t at = 0; at < from.size(); at += 300'007) {
    copies.push_back({to.data() + at, BytesView(from).subspan(at, std::min<std::size_t>(300'007, from.size() - at))});
  }
  copy_all(copies, 3);
  EXPECT_EQ(to, from);
}

}  // namespace
}  // namespace holdfast::world
