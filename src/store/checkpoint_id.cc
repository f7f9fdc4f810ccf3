#include "store/checkpoint_id.h"

#include <charconv>

namespace holdfast::store {
namespace {

constexpr std::string_view kStepPrefix = "step-";
constexpr std::string_view kEpochInfix = "-epoch-";
constexpr std::string_view kFencePrefix = "fence-";
constexpr std::size_t kStepDigits = 12;

template <typename Number>
std::optional<Number> whole_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string checkpoint_name(CheckpointId id) {
  std::string digits = std::to_string(id.step);
  if (digits.size() < kStepDigits) digits.insert(0, kStepDigits - digits.size(), '0');
  return std::string(kStepPrefix) + digits + std::string(kEpochInfix) + std::to_string(id.epoch);
}

std::optional<CheckpointId> parse_checkpoint_name(std::string_view name) {
  const std::size_t infix = kStepPrefix.size() + kStepDigits;
  if (!name.starts_with(kStepPrefix) || name.size() <= infix + kEpochInfix.size()) return std::nullopt;
  const auto step = whole_number<Step>(name.substr(kStepPrefix.size(), kStepDigits));
  const auto epoch = whole_number<Epoch>(name.substr(infix + kEpochInfix.size()));
  if (!step || !epoch) return std::nullopt;
  const CheckpointId id{*epoch, *step};
  if (checkpoint_name(id) != name) return std::nullopt;
  return id;
}

std::string fence_name(Epoch epoch) { return std::string(kFencePrefix) + std::to_string(epoch); }

std::optional<Epoch> parse_fence_name(std::string_view name) {
  if (!name.starts_with(kFencePrefix)) return std::nullopt;
  const auto epoch = whole_number<Epoch>(name.substr(kFencePrefix.size()));
  if (!epoch || fence_name(*epoch) != name) return std::nullopt;
  return epoch;
}

}  // namespace holdfast::store
