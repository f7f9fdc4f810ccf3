#include "telemetry/goodput.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>
#include <vector>

namespace holdfast::telemetry {
namespace {

Nanos of(const Ledger& ledger, Bucket bucket, Nanos at) { return ledger.totals(at)[static_cast<std::size_t>(bucket)]; }

Nanos sum(const Ledger& ledger, Nanos at) {
  const auto totals = ledger.totals(at);
  return std::accumulate(totals.begin(), totals.end(), Nanos{0});
}

TEST(Ledger, EveryNanosecondLiesInOneBucket) {
  Ledger ledger(Nanos(100));
  ledger.enter(Bucket::Train, Nanos(103));
  ledger.enter(Bucket::Checkpoint, Nanos(110));
  ledger.enter(Bucket::Train, Nanos(111));
  EXPECT_EQ(of(ledger, Bucket::Start, Nanos(150)), Nanos(3));
  EXPECT_EQ(of(ledger, Bucket::Train, Nanos(150)), Nanos(46));
  EXPECT_EQ(of(ledger, Bucket::Checkpoint, Nanos(150)), Nanos(1));
  EXPECT_EQ(sum(ledger, Nanos(150)), ledger.wall(Nanos(150)));
  EXPECT_DOUBLE_EQ(ledger.ettr(Nanos(150)), 0.92);
}

TEST(Ledger, NoTimeNoRatio) { EXPECT_EQ(Ledger(Nanos(5)).ettr(Nanos(5)), 0.0); }

TEST(Ledger, TimeLaterKnownToBeLostMovesToItsBucket) {
  Ledger ledger(Nanos(0));
  ledger.enter(Bucket::Train, Nanos(10));
  ledger.reclassify_since(Nanos(70), Bucket::Detect);
  ledger.enter(Bucket::Recover, Nanos(90));
  EXPECT_EQ(of(ledger, Bucket::Train, Nanos(100)), Nanos(60));
  EXPECT_EQ(of(ledger, Bucket::Detect, Nanos(100)), Nanos(20));
  EXPECT_EQ(of(ledger, Bucket::Recover, Nanos(100)), Nanos(10));
}

TEST(Ledger, ReclassifyingReachesOverSeveralBuckets) {
  Ledger ledger(Nanos(0));
  ledger.enter(Bucket::Train, Nanos(10));
  ledger.enter(Bucket::Checkpoint, Nanos(20));
  ledger.enter(Bucket::Train, Nanos(30));
  ledger.reclassify_since(Nanos(15), Bucket::Detect);
  EXPECT_EQ(of(ledger, Bucket::Train, Nanos(40)), Nanos(5));
  EXPECT_EQ(of(ledger, Bucket::Checkpoint, Nanos(40)), Nanos(0));
  EXPECT_EQ(of(ledger, Bucket::Detect, Nanos(40)), Nanos(25));
}

TEST(Ledger, TimesThatGoBackAreTakenAsTheLast) {
  Ledger ledger(Nanos(100));
  ledger.enter(Bucket::Train, Nanos(200));
  ledger.enter(Bucket::Stop, Nanos(150));
  EXPECT_EQ(of(ledger, Bucket::Train, Nanos(250)), Nanos(0));
  EXPECT_EQ(sum(ledger, Nanos(120)), ledger.wall(Nanos(120)));
  ledger.reclassify_since(Nanos(0), Bucket::Recover);
  EXPECT_EQ(of(ledger, Bucket::Recover, Nanos(250)), Nanos(150));
}

TEST(Ledger, StaysBoundedAndExactOverALongRun) {
  Ledger ledger(Nanos(0));
  const auto changes = static_cast<std::int64_t>(3 * Ledger::kTailMax);
  for (std::int64_t i = 1; i <= changes; ++i) ledger.enter(i % 2 ? Bucket::Train : Bucket::Checkpoint, Nanos(i * 10));
  EXPECT_EQ(sum(ledger, Nanos(changes * 10)), Nanos(changes * 10));
  ledger.reclassify_since(Nanos(0), Bucket::Detect);
  EXPECT_EQ(sum(ledger, Nanos(changes * 10)), Nanos(changes * 10));
  EXPECT_GT(of(ledger, Bucket::Train, Nanos(changes * 10)), Nanos(0));
}

TEST(Ledger, AStepBegunAgainIsRedoneOnce) {
  Ledger ledger(Nanos(0));
  for (Step step = 0; step < 5; ++step) {
    ledger.step_begin(step);
    if (step < 4) ledger.step_done(step);
  }
  ledger.step_begin(4);
  ledger.step_done(4);
  EXPECT_EQ(ledger.steps_redone(), 1u);
  EXPECT_EQ(ledger.steps_done(), 5u);
  EXPECT_EQ(ledger.steps_lost(0, 5), 0u);
}

TEST(Ledger, AFullRestartRedoesWhatItRolledBack) {
  Ledger ledger(Nanos(0));
  const auto run = [&](Step first, Step last) {
    for (Step step = first; step < last; ++step) ledger.step_begin(step), ledger.step_done(step);
  };
  run(0, 35);
  ledger.roll_back(20);
  EXPECT_EQ(ledger.steps_lost(0, 35), 15u);
  run(20, 40);
  EXPECT_EQ(ledger.steps_redone(), 15u);
  EXPECT_EQ(ledger.steps_lost(0, 40), 0u);
}

TEST(Ledger, MissingStepsAreLost) {
  Ledger ledger(Nanos(0));
  for (Step step : {0, 1, 4, 5, 7}) ledger.step_done(step);
  EXPECT_EQ(ledger.steps_lost(0, 8), 3u);
  EXPECT_EQ(ledger.steps_lost(4, 6), 0u);
  EXPECT_EQ(ledger.steps_lost(9, 9), 0u);
  ledger.step_done(6);
  ledger.step_done(6);
  EXPECT_EQ(ledger.steps_done(), 6u);
}

/// A run of random events, times among them that go back.
std::vector<LedgerEvent> random_history(std::uint64_t seed, int size) {
  std::mt19937_64 random(seed);
  std::vector<LedgerEvent> history;
  std::int64_t now = 0;
  for (int i = 0; i < size; ++i) {
    now += static_cast<std::int64_t>(random() % 1000);
    const auto at = Nanos(now - static_cast<std::int64_t>(random() % 1500));
    history.push_back({static_cast<LedgerEvent::Kind>(random() % 5), at, static_cast<Bucket>(random() % kBuckets),
                       static_cast<Step>(random() % 50)});
  }
  return history;
}

TEST(Ledger, SumsToTheWallClockWhateverHappens) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Ledger ledger(Nanos(0));
    for (const LedgerEvent& event : random_history(seed, 200)) {
      ledger.apply(event);
      ASSERT_EQ(sum(ledger, event.at), ledger.wall(event.at));
      for (const Nanos total : ledger.totals(event.at)) ASSERT_GE(total, Nanos{0});
      ASSERT_LE(ledger.ettr(event.at), 1.0);
    }
  }
}

TEST(Ledger, StepsAgreeWithAPlainSet) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Ledger ledger(Nanos(0));
    std::set<Step> plain;
    for (const LedgerEvent& event : random_history(seed, 300)) {
      ledger.apply(event);
      if (event.kind == LedgerEvent::Kind::StepDone) plain.insert(event.step);
      if (event.kind == LedgerEvent::Kind::RollBack) plain.erase(plain.lower_bound(event.step), plain.end());
      ASSERT_EQ(ledger.steps_done(), plain.size());
      ASSERT_EQ(ledger.steps_lost(0, 50), 50 - plain.size());
    }
  }
}

TEST(Ledger, ReplayingTheEventsGivesTheLiveNumbers) {
  Ledger live(Nanos(7));
  live.enter(Bucket::Train, Nanos(10));
  live.step_begin(0);
  live.step_done(0);
  live.step_begin(1);
  live.reclassify_since(Nanos(15), Bucket::Detect);
  live.enter(Bucket::Recover, Nanos(20));
  live.roll_back(0);
  live.enter(Bucket::Redo, Nanos(25));
  live.step_begin(0);
  live.step_done(0);

  using Kind = LedgerEvent::Kind;
  const std::vector<LedgerEvent> written = {
      {.kind = Kind::Enter, .at = Nanos(10), .bucket = Bucket::Train},
      {.kind = Kind::StepBegin, .step = 0},
      {.kind = Kind::StepDone, .step = 0},
      {.kind = Kind::StepBegin, .step = 1},
      {.kind = Kind::Reclassify, .at = Nanos(15), .bucket = Bucket::Detect},
      {.kind = Kind::Enter, .at = Nanos(20), .bucket = Bucket::Recover},
      {.kind = Kind::RollBack, .step = 0},
      {.kind = Kind::Enter, .at = Nanos(25), .bucket = Bucket::Redo},
      {.kind = Kind::StepBegin, .step = 0},
      {.kind = Kind::StepDone, .step = 0},
  };
  Ledger replayed(Nanos(7));
  for (const LedgerEvent& event : written) replayed.apply(event);
  EXPECT_EQ(replayed.totals(Nanos(40)), live.totals(Nanos(40)));
  EXPECT_EQ(replayed.ettr(Nanos(40)), live.ettr(Nanos(40)));
  EXPECT_EQ(replayed.steps_done(), live.steps_done());
  EXPECT_EQ(replayed.steps_redone(), live.steps_redone());
  EXPECT_EQ(replayed.steps_lost(0, 2), live.steps_lost(0, 2));
}

TEST(Ledger, EveryBucketHasAName) {
  for (std::size_t i = 0; i < kBuckets; ++i) EXPECT_STRNE(bucket_name(static_cast<Bucket>(i)), "?");
  EXPECT_STREQ(bucket_name(static_cast<Bucket>(kBuckets)), "?");
}

}  // namespace
}  // namespace holdfast::telemetry
