// A moment all ranks agree on: "after step S we stop" or "after step S we take a checkpoint". Pure.
// A rank that has already begun a step past S says no and a later S is proposed; one that said yes waits at the end of
// S until all have. So all act after the same step, with no collective of the user's in between.
#pragma once

#include <optional>
#include <set>

#include "run/messages.h"

namespace holdfast::run {

class Agreement {
 public:
  /// What is wanted; added to what a proposal under way wants.
  void want(std::uint8_t actions) { wanted_ |= actions; }
  std::uint8_t wanted() const { return wanted_; }
  bool under_way() const { return proposal_.has_value(); }
  /// The next proposal for `voters` ranks, the furthest of which has begun `begun`. None where nothing is wanted.
  std::optional<Propose> propose(std::uint32_t voters, Step begun);
  struct Outcome {
    std::optional<Propose> again;  ///< somebody was past it: tell all
    std::optional<Agreed> agreed;  ///< all said yes: tell all
  };
  Outcome vote(Rank rank, const Vote& vote);
  /// The epoch ended: whatever was proposed is void, what was wanted stays wanted.
  void abandon() { proposal_.reset(); }

 private:
  std::uint8_t wanted_ = 0;
  std::uint64_t last_id_ = 0;
  std::uint32_t voters_ = 0;
  std::optional<Propose> proposal_;
  std::set<Rank> yes_;
};

}  // namespace holdfast::run
