#include "store/checkpoint_id.h"

#include <gtest/gtest.h>

namespace holdfast::store {
namespace {

TEST(CheckpointName, SpellsStepAndEpoch) {
  EXPECT_EQ(checkpoint_name({.epoch = 3, .step = 50}), "step-000000000050-epoch-3");
  EXPECT_EQ(checkpoint_name({.epoch = UINT64_MAX, .step = kStepMax}), "step-999999999999-epoch-18446744073709551615");
}

TEST(CheckpointName, ReadsBackWhatItWrote) {
  for (const CheckpointId id : {CheckpointId{0, 0}, CheckpointId{7, 1234}, CheckpointId{UINT64_MAX, kStepMax}}) {
    EXPECT_EQ(parse_checkpoint_name(checkpoint_name(id)), id);
  }
}

TEST(CheckpointName, TakesNoOtherSpelling) {
  for (const char* name :
       {"", "step-50-epoch-3", "step-000000000050-epoch-03", "step-000000000050-epoch-", "step-000000000050-epoch-3 ",
        "step-000000000050-epoch-3.new", "step--00000000050-epoch-3", "step-000000000050-epoch--3",
        "step-000000000050-epoch-18446744073709551616", "step-0000000000050-epoch-3", "Step-000000000050-epoch-3"}) {
    EXPECT_FALSE(parse_checkpoint_name(name)) << name;
  }
}

TEST(CheckpointName, TheNewerEpochIsNewerWhateverItsStep) {
  EXPECT_LT((CheckpointId{3, 60}), (CheckpointId{4, 50}));
  EXPECT_LT((CheckpointId{3, 50}), (CheckpointId{3, 60}));
}

TEST(FenceName, ReadsBackWhatItWroteAndNothingElse) {
  EXPECT_EQ(parse_fence_name(fence_name(12)), Epoch{12});
  for (const char* name : {"fence-", "fence-012", "fence-1.new", "fence--1", "gate-1"}) {
    EXPECT_FALSE(parse_fence_name(name)) << name;
  }
}

}  // namespace
}  // namespace holdfast::store
