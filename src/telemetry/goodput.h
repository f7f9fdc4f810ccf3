// Where the time of a run went: every nanosecond lies in exactly one bucket; steps done, done again, and lost.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>

#include "base/ids.h"
#include "world/clock.h"

namespace holdfast::telemetry {

using world::Nanos;

enum class Bucket : std::uint8_t { Start, Train, Redo, Checkpoint, Detect, Recover, Stop };
constexpr std::size_t kBuckets = 7;
/// snake_case word for the report.
const char* bucket_name(Bucket bucket);

/// One entry of a run's history; folding the same list again gives the same ledger.
struct LedgerEvent {
  enum class Kind : std::uint8_t { Enter, Reclassify, StepBegin, StepDone, RollBack };
  Kind kind = Kind::Enter;
  Nanos at{0};                    ///< Enter, Reclassify
  Bucket bucket = Bucket::Start;  ///< Enter, Reclassify
  Step step = 0;                  ///< StepBegin, StepDone, RollBack
};

class Ledger {
 public:
  /// The wall clock of the run begins here, in bucket Start. Times are of one steady clock; one that lies before the
  /// last is taken as the last.
  explicit Ledger(Nanos begin) : begin_(begin), last_(begin) { tail_.push_back({begin, Bucket::Start}); }
  void apply(const LedgerEvent& event);

  void enter(Bucket bucket, Nanos at);
  /// Time since `at` turns out to have been `bucket` (work that a fault made worthless is Detect), and stays so until
  /// the next `enter`. Reaches back `kTailMax` changes at most.
  void reclassify_since(Nanos at, Bucket bucket);

  /// Some rank began `step`. A step begun before counts as redone.
  void step_begin(Step step);
  /// All ranks have it behind them.
  void step_done(Step step);
  /// The run goes back: steps from `step` on leave the history.
  void roll_back(Step step);

  Bucket now_in() const { return tail_.back().bucket; }
  /// Time in each bucket up to `at`. The sum is exactly `wall(at)`.
  std::array<Nanos, kBuckets> totals(Nanos at) const;
  Nanos wall(Nanos at) const { return std::max(at, last_) - begin_; }
  /// Train time by wall clock, 0 .. 1.
  double ettr(Nanos at) const;

  std::uint64_t steps_done() const;  ///< distinct steps in the history
  std::uint64_t steps_redone() const { return redone_; }
  /// Steps of [first, last) that the history lacks.
  std::uint64_t steps_lost(Step first, Step last) const;

  static constexpr std::size_t kTailMax = 4096;

 private:
  struct Segment {
    Nanos begin;
    Bucket bucket;
  };
  Nanos& settled(Bucket bucket) { return settled_[static_cast<std::size_t>(bucket)]; }
  void append(Nanos at, Bucket bucket);

  Nanos begin_;
  Nanos last_;
  std::array<Nanos, kBuckets> settled_{};  ///< what lies before the tail
  std::deque<Segment> tail_;               ///< each ends where the next begins; the last one is open
  Step begun_max_ = kNoStep;
  std::uint64_t redone_ = 0;
  std::map<Step, Step> history_;  ///< disjoint intervals [first, second)
};

}  // namespace holdfast::telemetry
