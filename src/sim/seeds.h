// Which seeds a simulated test runs, and what to type to run a failing one again. Knows nothing of GoogleTest but how
// its filter is spelled.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::sim {

/// 1 .. count. HOLDFAST_SIM_SEED=N gives just N; HOLDFAST_SIM_SEEDS=M gives M seeds instead of `count`.
std::vector<std::uint64_t> seeds(std::uint64_t count);

/// "seed 17; replay: HOLDFAST_SIM_SEED=17 '/path/of/this/test' --gtest_filter='Suite.Test'".
std::string replay(std::uint64_t seed, const std::string& test_name);

}  // namespace holdfast::sim

/// In a GoogleTest body: every failure in this scope says how to replay it.
#define HOLDFAST_SIM_TRACE(seed)                                                                            \
  SCOPED_TRACE(::holdfast::sim::replay(                                                                     \
      seed, std::string(::testing::UnitTest::GetInstance()->current_test_info()->test_suite_name()) + "." + \
                ::testing::UnitTest::GetInstance()->current_test_info()->name()))
