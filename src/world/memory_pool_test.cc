#include "world/memory_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

namespace holdfast::world {
namespace {

constexpr std::size_t kHuge = MemoryPool::kHugePage;

TEST(MemoryPool, GivesMemoryOnWholeHugePages) {
  MemoryPool pool({.kept_bytes_max = 8 * kHuge});
  for (const std::size_t size : {std::size_t{1}, kHuge, kHuge + 1}) {
    std::byte* memory = pool.take(size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % kHuge, 0U);
    std::memset(memory, 7, size);
    pool.give(memory, size);
  }
}

TEST(MemoryPool, TakesWhatWasGivenBackBeforeItAsksForMore) {
  MemoryPool pool({.kept_bytes_max = 8 * kHuge});
  std::byte* first = pool.take(3 * kHuge);
  pool.give(first, 3 * kHuge);
  EXPECT_EQ(pool.kept_bytes(), 3 * kHuge);
  std::byte* again = pool.take(2 * kHuge);
  EXPECT_EQ(again, first);
  EXPECT_EQ(pool.kept_bytes(), kHuge);
  EXPECT_EQ(pool.take(kHuge), first + 2 * kHuge);
  EXPECT_EQ(pool.kept_bytes(), 0U);
  pool.give(first + 2 * kHuge, kHuge);
  pool.give(again, 2 * kHuge);
}

TEST(MemoryPool, JoinsPartsThatAdjoin) {
  MemoryPool pool({.kept_bytes_max = 8 * kHuge});
  std::byte* whole = pool.take(4 * kHuge);
  pool.give(whole, kHuge);
  pool.give(whole + 2 * kHuge, 2 * kHuge);
  pool.give(whole + kHuge, kHuge);
  EXPECT_EQ(pool.take(4 * kHuge), whole);
  pool.give(whole, 4 * kHuge);
}

TEST(MemoryPool, KeepsNoMoreThanItsBound) {
  MemoryPool pool({.kept_bytes_max = 3 * kHuge});
  std::byte* large = pool.take(4 * kHuge);
  std::byte* two = pool.take(2 * kHuge);
  std::byte* other_two = pool.take(2 * kHuge);
  pool.give(large, 4 * kHuge);
  EXPECT_EQ(pool.kept_bytes(), 0U);
  pool.give(two, 2 * kHuge);
  pool.give(other_two, 2 * kHuge);
  EXPECT_EQ(pool.kept_bytes(), 2 * kHuge);
  pool.keep_at_most(kHuge);
  EXPECT_EQ(pool.kept_bytes(), 0U);
}

// A new range is not added to what is kept but cannot serve: the peak is that of the larger.
TEST(MemoryPool, GivesUpAsMuchAsItTakesAnew) {
  MemoryPool pool({.kept_bytes_max = 8 * kHuge});
  pool.give(pool.take(2 * kHuge), 2 * kHuge);
  std::byte* larger = pool.take(3 * kHuge);
  EXPECT_EQ(pool.kept_bytes(), 0U);
  pool.give(larger, 3 * kHuge);
}

TEST(MemoryPool, KeepsWhatIsWrittenAfterTheKernelWasToldThatItMayHaveIt) {
  MemoryPool pool({.kept_bytes_max = 64 * kHuge, .reclaimable_from = kHuge});
  for (int round = 0; round < 3; ++round) {
    const std::span memory(pool.take(20 * kHuge), 20 * kHuge);
    fault_in(memory);
    std::memset(memory.data(), round + 1, memory.size());
    EXPECT_TRUE(std::all_of(memory.begin(), memory.end(), [&](std::byte b) { return b == std::byte(round + 1); }));
    pool.give(memory.data(), memory.size());
  }
}

TEST(MemoryPool, IsSharedByThreads) {
  MemoryPool pool({.kept_bytes_max = 6 * kHuge, .reclaimable_from = kHuge});
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t) {
    threads.emplace_back([&pool, t] {
      for (int i = 0; i < 50; ++i) {
        const std::size_t size = kHuge * static_cast<std::size_t>(1 + (i + t) % 3);
        std::byte* memory = pool.take(size);
        memory[0] = memory[size - 1] = std::byte(t);
        std::this_thread::yield();
        EXPECT_EQ(memory[0], std::byte(t));
        EXPECT_EQ(memory[size - 1], std::byte(t));
        pool.give(memory, size);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(pool.kept_bytes(), 6 * kHuge);
}

TEST(FaultIn, TakesAnyRange) {
  std::vector<std::byte> memory(10'000, std::byte{3});
  fault_in(std::span(memory).subspan(1, 9'000));
  fault_in({});
  EXPECT_TRUE(std::all_of(memory.begin(), memory.end(), [](std::byte b) { return b == std::byte{3}; }));
}

}  // namespace
}  // namespace holdfast::world
