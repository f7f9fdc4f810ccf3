#include "sim/sim_objects.h"

#include <gtest/gtest.h>

namespace holdfast::sim {
namespace {

const world::PutCondition kAbsent{.absent = true, .etag = ""};
constexpr world::Pieces kTwoPieces{.head = 0, .piece = 1, .total = 2};

std::string content(SimObjects& objects, const std::string& key) {
  const auto bytes = objects.get(key, 100);
  return bytes ? std::string(as_text(*bytes)) : std::string(code_name(bytes.error().code()));
}

TEST(SimObjects, OfTwoConditionalPutsOneHasConflict) {
  SimObjects objects(1);
  ASSERT_TRUE(objects.put("a", as_bytes("1"), kAbsent));
  EXPECT_EQ(objects.put("a", as_bytes("2"), kAbsent).error().code(), Code::Conflict);
  EXPECT_EQ(content(objects, "a"), "1");
}

TEST(SimObjects, APieceIsSeenOnlyAfterTheCommitAndTheRestOfADeadWriterIsListed) {
  SimObjects objects(1);
  {
    auto file = objects.begin("a", kTwoPieces, {});
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write(1, as_bytes("b")));
    ASSERT_TRUE((*file)->write(0, as_bytes("a")));
    EXPECT_EQ(content(objects, "a"), "not_found");
    ASSERT_TRUE((*file)->commit());
    auto other = objects.begin("b", kTwoPieces, {});
    ASSERT_TRUE(other);
    objects.kill_after(0);
  }
  objects.restart();
  EXPECT_EQ(content(objects, "a"), "ab");
  // Whether the abandoning of "b" got through is chance, drawn at the call on which the process died.
  const auto left = objects.unfinished("", 10);
  ASSERT_TRUE(left);
  for (const world::UnfinishedObject& each : *left) {
    EXPECT_EQ(each.key, "b");
    EXPECT_TRUE(objects.abandon(each));
  }
  EXPECT_TRUE(objects.unfinished("", 10)->empty());
}

TEST(SimObjects, ALostAnswerTookEffectAndARefusedOneDidNot) {
  SimObjects objects(1);
  objects.policy.answer_lost = 1;
  EXPECT_EQ(objects.put("lost", as_bytes("1"), {}).error().code(), Code::Unavailable);
  objects.policy = {.refused = 1, .answer_lost = 0};
  EXPECT_EQ(objects.put("refused", as_bytes("1"), {}).error().code(), Code::Unavailable);
  objects.policy = {};
  EXPECT_EQ(content(objects, "lost"), "1");
  EXPECT_EQ(content(objects, "refused"), "not_found");
}

TEST(SimObjects, WhatIsReplacedWhileItIsReadIsToldNotMixed) {
  SimObjects objects(1);
  ASSERT_TRUE(objects.put("a", as_bytes("old"), {}));
  const auto file = objects.open("a");
  ASSERT_TRUE(file);
  ASSERT_TRUE(objects.put("a", as_bytes("new"), {}));
  Bytes out(3);
  EXPECT_EQ((*file)->read_at(0, out).error().code(), Code::Unavailable);
}

TEST(SimObjects, AfterItsDeathAProcessReachesNothing) {
  SimObjects objects(1);
  objects.kill_after(1);
  ASSERT_TRUE(objects.put("a", as_bytes("1"), {}));
  (void)objects.put("b", as_bytes("1"), {});
  EXPECT_EQ(content(objects, "a"), "unavailable");
  objects.restart();
  EXPECT_EQ(content(objects, "a"), "1");
}

}  // namespace
}  // namespace holdfast::sim
