#include "run/agreement.h"

#include <gtest/gtest.h>

namespace holdfast::run {
namespace {

TEST(Agreement, AllSayYesAndItHolds) {
  Agreement agreement;
  EXPECT_FALSE(agreement.propose(2, 5));
  agreement.want(kStop);
  const auto proposal = agreement.propose(2, 5);
  ASSERT_TRUE(proposal);
  EXPECT_EQ(proposal->step, 6);
  EXPECT_FALSE(agreement.vote(0, {.proposal = proposal->proposal, .accepted = true, .step = 5}).agreed);
  // The same vote twice is one vote.
  EXPECT_FALSE(agreement.vote(0, {.proposal = proposal->proposal, .accepted = true, .step = 5}).agreed);
  EXPECT_TRUE(agreement.vote(1, {.proposal = proposal->proposal, .accepted = true, .step = 5}).agreed);
  EXPECT_EQ(agreement.wanted(), 0);
}

TEST(Agreement, ARankThatIsPastItMovesItOut) {
  Agreement agreement;
  agreement.want(kTakeCheckpoint);
  const auto first = agreement.propose(2, 5);
  agreement.vote(0, {.proposal = first->proposal, .accepted = true, .step = 5});
  const auto outcome = agreement.vote(1, {.proposal = first->proposal, .accepted = false, .step = 8});
  ASSERT_TRUE(outcome.again);
  EXPECT_EQ(outcome.again->step, 9);
  // Votes on the old proposal no longer count.
  EXPECT_FALSE(agreement.vote(1, {.proposal = first->proposal, .accepted = true, .step = 8}).agreed);
  agreement.vote(0, {.proposal = outcome.again->proposal, .accepted = true, .step = 8});
  EXPECT_TRUE(agreement.vote(1, {.proposal = outcome.again->proposal, .accepted = true, .step = 8}).agreed);
}

TEST(Agreement, AnAbandonedProposalIsMadeAgain) {
  Agreement agreement;
  agreement.want(kStop);
  const auto first = agreement.propose(1, 5);
  agreement.abandon();
  EXPECT_FALSE(agreement.vote(0, {.proposal = first->proposal, .accepted = true, .step = 5}).agreed);
  const auto second = agreement.propose(1, 9);
  ASSERT_TRUE(second);
  EXPECT_GT(second->proposal, first->proposal);
  EXPECT_EQ(second->actions, kStop);
}

}  // namespace
}  // namespace holdfast::run
