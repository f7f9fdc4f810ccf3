#include "telemetry/goodput.h"

#include <algorithm>

namespace holdfast::telemetry {

namespace {
constexpr std::array<const char*, kBuckets> kNames = {"start",  "train",   "redo", "checkpoint",
                                                      "detect", "recover", "stop"};
}  // namespace

const char* bucket_name(Bucket bucket) {
  const auto index = static_cast<std::size_t>(bucket);
  return index < kNames.size() ? kNames[index] : "?";
}

void Ledger::apply(const LedgerEvent& event) {
  switch (event.kind) {
    case LedgerEvent::Kind::Enter: return enter(event.bucket, event.at);
    case LedgerEvent::Kind::Reclassify: return reclassify_since(event.at, event.bucket);
    case LedgerEvent::Kind::StepBegin: return step_begin(event.step);
    case LedgerEvent::Kind::StepDone: return step_done(event.step);
    case LedgerEvent::Kind::RollBack: return roll_back(event.step);
  }
}

void Ledger::append(Nanos at, Bucket bucket) {
  if (tail_.back().bucket == bucket) return;
  tail_.push_back({at, bucket});
  if (tail_.size() <= kTailMax) return;
  settled(tail_.front().bucket) += tail_[1].begin - tail_.front().begin;
  tail_.pop_front();
}

void Ledger::enter(Bucket bucket, Nanos at) {
  last_ = std::max(last_, at);
  append(last_, bucket);
}

void Ledger::reclassify_since(Nanos at, Bucket bucket) {
  at = std::max(at, tail_.front().begin);
  last_ = std::max(last_, at);
  while (tail_.size() > 1 && tail_.back().begin >= at) tail_.pop_back();
  if (tail_.back().begin == at) {
    tail_.back().bucket = bucket;
  } else {
    append(at, bucket);
  }
}

void Ledger::step_begin(Step step) {
  if (step <= begun_max_) ++redone_;
  begun_max_ = std::max(begun_max_, step);
}

void Ledger::step_done(Step step) {
  auto next = history_.upper_bound(step);
  const bool after_one = next != history_.begin() && std::prev(next)->second >= step;
  if (after_one && std::prev(next)->second > step) return;  // known
  const bool before_one = next != history_.end() && next->first == step + 1;
  const Step first = after_one ? std::prev(next)->first : step;
  const Step end = before_one ? next->second : step + 1;
  if (before_one) history_.erase(next);
  history_[first] = end;
}

void Ledger::roll_back(Step step) {
  while (!history_.empty() && std::prev(history_.end())->first >= step) history_.erase(std::prev(history_.end()));
  if (history_.empty()) return;
  Step& end = std::prev(history_.end())->second;
  end = std::min(end, step);
}

std::array<Nanos, kBuckets> Ledger::totals(Nanos at) const {
  auto totals = settled_;
  for (std::size_t index = 0; index < tail_.size(); ++index) {
    const Nanos end = index + 1 < tail_.size() ? tail_[index + 1].begin : std::max(at, last_);
    totals[static_cast<std::size_t>(tail_[index].bucket)] += end - tail_[index].begin;
  }
  return totals;
}

double Ledger::ettr(Nanos at) const {
  if (wall(at) == Nanos{0}) return 0;
  return static_cast<double>(totals(at)[static_cast<std::size_t>(Bucket::Train)].count()) /
         static_cast<double>(wall(at).count());
}

std::uint64_t Ledger::steps_done() const {
  std::uint64_t done = 0;
  for (const auto& [first, end] : history_) done += static_cast<std::uint64_t>(end - first);
  return done;
}

std::uint64_t Ledger::steps_lost(Step first, Step last) const {
  if (last <= first) return 0;
  auto lost = static_cast<std::uint64_t>(last - first);
  for (const auto& [begin, end] : history_) {
    const Step from = std::max(begin, first);
    const Step to = std::min(end, last);
    if (from < to) lost -= static_cast<std::uint64_t>(to - from);
  }
  return lost;
}

}  // namespace holdfast::telemetry
