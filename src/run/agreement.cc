#include "run/agreement.h"

#include <algorithm>

namespace holdfast::run {

std::optional<Propose> Agreement::propose(std::uint32_t voters, Step begun) {
  if (wanted_ == 0 || proposal_) return std::nullopt;
  voters_ = voters;
  yes_.clear();
  proposal_ = Propose{.proposal = ++last_id_, .actions = wanted_, .step = std::max<Step>(begun, 0) + 1};
  return proposal_;
}

Agreement::Outcome Agreement::vote(Rank rank, const Vote& vote) {
  if (!proposal_ || vote.proposal != proposal_->proposal) return {};
  if (!vote.accepted) {
    const Step later = std::max(vote.step, proposal_->step) + 1;
    yes_.clear();
    proposal_ = Propose{.proposal = ++last_id_, .actions = wanted_, .step = later};
    return {.again = proposal_, .agreed = std::nullopt};
  }
  yes_.insert(rank);
  if (yes_.size() < voters_) return {};
  const Agreed agreed{.proposal = proposal_->proposal};
  wanted_ &= static_cast<std::uint8_t>(~proposal_->actions);
  proposal_.reset();
  return {.again = std::nullopt, .agreed = agreed};
}

}  // namespace holdfast::run
