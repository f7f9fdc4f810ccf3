#include "sim/seeds.h"

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string_view>

#include "base/check.h"

namespace holdfast::sim {

namespace {

std::optional<std::uint64_t> number_from(const char* name) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
  if (text == nullptr || *text == '\0') return std::nullopt;
  const std::string_view view(text);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  // A mistyped seed must not quietly run another one.
  CHECK(error == std::errc() && end == view.data() + view.size());
  return value;
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

const std::string& this_program() {
  static const std::string path = [] {
    std::error_code failure;
    const auto found = std::filesystem::read_symlink("/proc/self/exe", failure);
    return failure ? std::string("TEST") : found.string();
  }();
  return path;
}

}  // namespace

std::vector<std::uint64_t> seeds(std::uint64_t count) {
  if (const auto one = number_from("HOLDFAST_SIM_SEED")) return {*one};
  std::vector<std::uint64_t> all(number_from("HOLDFAST_SIM_SEEDS").value_or(count));
  std::iota(all.begin(), all.end(), std::uint64_t{1});
  return all;
}

std::string replay(std::uint64_t seed, const std::string& test_name) {
  const std::string number = std::to_string(seed);
  return "seed " + number + "; replay: HOLDFAST_SIM_SEED=" + number + " " + quoted(this_program()) +
         " --gtest_filter=" + quoted(test_name);
}

}  // namespace holdfast::sim
