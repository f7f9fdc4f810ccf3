#include "world/shared_memory.h"

#include <gtest/gtest.h>

#include "world/processes_fixture.h"

namespace holdfast::world {
namespace {

class SharedMemoryTest : public ProcessesTest {};

TEST_F(SharedMemoryTest, IsSeenByUsAndTheChild) {
  auto ring = processes_.make_shared_memory(4096);
  ASSERT_TRUE(ring);
  ASSERT_EQ((*ring)->bytes().size(), 4096u);
  (*ring)->bytes()[0] = std::byte{'a'};
  SpawnSpec spec = python(
      "import mmap, os\n"
      "shared = mmap.mmap(int(os.environ['HOLDFAST_RING_FD']), 4096)\n"
      "print(chr(shared[0]))\n"
      "shared[1] = ord('b')\n");
  spec.ring = ring->get();
  Story story;
  const auto process = spawn(spec, story.record());
  ASSERT_TRUE(serve([&] { return story.exit.has_value(); }));
  EXPECT_EQ(story.out, "a\n") << story.err;
  EXPECT_EQ((*ring)->bytes()[1], std::byte{'b'});
}

}  // namespace
}  // namespace holdfast::world
