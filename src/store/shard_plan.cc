#include "store/shard_plan.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <string>
#include <utility>

namespace holdfast::store {
namespace {

std::uint64_t bytes_of(const std::vector<std::size_t>& shard, std::span<const std::uint64_t> sizes) {
  std::uint64_t bytes = 0;
  for (const std::size_t tensor : shard) bytes += sizes[tensor];
  return bytes;
}

/// Splits the largest file that has two tensors or more.
void split_one(ShardPlan& plan, std::span<const std::uint64_t> sizes) {
  auto largest = plan.end();
  for (auto shard = plan.begin(); shard != plan.end(); ++shard) {
    if (shard->size() < 2) continue;
    if (largest == plan.end() || bytes_of(*shard, sizes) > bytes_of(*largest, sizes)) largest = shard;
  }
  const auto middle = largest->begin() + static_cast<std::ptrdiff_t>(largest->size() / 2);
  std::vector<std::size_t> rest(middle, largest->end());
  largest->erase(middle, largest->end());
  plan.insert(largest + 1, std::move(rest));
}

}  // namespace

ShardPlan cut_by_size(std::span<const std::uint64_t> sizes, std::uint64_t bytes_max) {
  ShardPlan plan(1);
  std::uint64_t used = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!plan.back().empty() && (used > bytes_max || sizes[i] > bytes_max - used)) {
      plan.emplace_back();
      used = 0;
    }
    plan.back().push_back(i);
    used += sizes[i];
  }
  return plan;
}

Result<ShardPlan> cut_into(std::span<const std::uint64_t> sizes, std::size_t files) {
  if (files == 0) return Error(Code::BadInput, "a model needs at least one file");
  if (files > 1 && files > sizes.size()) {
    return Error(Code::BadInput, "a model of " + std::to_string(sizes.size()) + " tensors can't be spread over " +
                                     std::to_string(files) + " files; ask for fewer");
  }
  std::uint64_t low = 0;
  std::uint64_t high = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (cut_by_size(sizes, middle).size() <= files) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  ShardPlan plan = cut_by_size(sizes, high);
  while (plan.size() < files) split_one(plan, sizes);
  return plan;
}

Result<std::uint64_t> parse_byte_size(std::string_view text) {
  constexpr std::array kUnits = std::to_array<std::pair<std::string_view, std::uint64_t>>({{"", 1},
                                                                                           {"B", 1},
                                                                                           {"kB", 1'000},
                                                                                           {"KB", 1'000},
                                                                                           {"MB", 1'000'000},
                                                                                           {"GB", 1'000'000'000},
                                                                                           {"TB", 1'000'000'000'000},
                                                                                           {"KiB", 1ULL << 10U},
                                                                                           {"MiB", 1ULL << 20U},
                                                                                           {"GiB", 1ULL << 30U},
                                                                                           {"TiB", 1ULL << 40U}});
  const Error bad(Code::BadInput,
                  "\"" + std::string(text) + "\" is no size of a file; write it as 5GB, 500MB, 4GiB or in bytes");
  std::uint64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc{} || number == 0) return bad;
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const auto& [name, factor] : kUnits) {
    if (name != unit) continue;
    if (__builtin_mul_overflow(number, factor, &number)) return bad;
    return number;
  }
  return bad;
}

}  // namespace holdfast::store
