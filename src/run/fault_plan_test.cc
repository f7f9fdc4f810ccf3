#include "run/fault_plan.h"

#include <gtest/gtest.h>

namespace holdfast::run {
namespace {

std::string why_not(std::string_view text) {
  auto plan = parse_fault_plan("plan.json", text, 4);
  return plan ? "accepted" : plan.error().message();
}

TEST(FaultPlan, ReadsEveryField) {
  auto plan = parse_fault_plan("plan.json",
                               R"({"faults": [{"kind": "slow", "step": 7, "rank": 1, "seconds": 2.5},
                                              {"kind": "sigkill", "step": 9, "ranks": [0, 3]},
                                              {"kind": "flip_checkpoint", "step": 11}]})",
                               4);
  ASSERT_TRUE(plan) << plan.error().message();
  ASSERT_EQ(plan->size(), 3u);
  EXPECT_EQ((*plan)[0].kind, PlannedKind::Slow);
  EXPECT_EQ((*plan)[0].seconds, 2.5);
  EXPECT_EQ((*plan)[1].ranks, (std::vector<Rank>{0, 3}));
  EXPECT_EQ((*plan)[2].step, 11);
}

TEST(FaultPlan, EachMistakeIsNamedWithItsPlace) {
  EXPECT_EQ(
      why_not(R"({"faults": [{"kind": "sigkill", "step": 1, "rank": 0}, {"kind": "sigkill", "step": 1, "rank": 4}]})"),
      "plan.json: fault 2: rank: a rank must be a whole number from 0 to 3");
  EXPECT_EQ(why_not(R"({"faults": [{"kind": "sleep", "step": -1, "rank": 0}]})"),
            "plan.json: fault 1: \"step\" must be a whole number from 0");
  EXPECT_EQ(why_not(R"({"faults": [{"kind": "sleep", "step": 1}]})"),
            "plan.json: fault 1: \"rank\" or \"ranks\" is missing");
  EXPECT_EQ(why_not(R"({"faults": [{"kind": "sleep", "steps": 1, "rank": 0}]})"),
            "plan.json: fault 1: unknown key \"steps\"; known: kind, step, rank, ranks, seconds");
  EXPECT_NE(why_not(R"({"faults": [{"kind": "flood", "step": 1, "rank": 0}]})").find("must be one of sigkill"),
            std::string::npos);
  EXPECT_NE(why_not("{").find("must be JSON like"), std::string::npos);
  EXPECT_NE(why_not(R"({"faults": [{"kind": "slow", "step": 1, "rank": 0, "seconds": -1}]})").find("above 0"),
            std::string::npos);
}

TEST(FaultPlan, DeepNestingIsRefused) {
  EXPECT_NE(why_not(std::string(100'000, '[')), "accepted");
  EXPECT_NE(why_not("{\"faults\": " + std::string(1000, '[') + std::string(1000, ']') + "}"), "accepted");
}

}  // namespace
}  // namespace holdfast::run
