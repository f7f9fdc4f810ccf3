#include "sim/seeds.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

namespace holdfast::sim {
namespace {

/// Sets a variable for one test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    value == nullptr ? unsetenv(name) : setenv(name, value, 1);
  }
  ~Variable() { old_ ? setenv(name_, old_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

TEST(Seeds, AreAsManyAsAskedFor) {
  const Variable one("HOLDFAST_SIM_SEED", nullptr);
  const Variable many("HOLDFAST_SIM_SEEDS", nullptr);
  EXPECT_EQ(seeds(3), (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST(Seeds, AreTheOneOfTheEnvironment) {
  const Variable one("HOLDFAST_SIM_SEED", "17");
  EXPECT_EQ(seeds(3), std::vector<std::uint64_t>{17});
}

TEST(Seeds, AreAsManyAsTheEnvironmentAsksFor) {
  const Variable one("HOLDFAST_SIM_SEED", nullptr);
  const Variable many("HOLDFAST_SIM_SEEDS", "2");
  EXPECT_EQ(seeds(100), (std::vector<std::uint64_t>{1, 2}));
}

TEST(SeedsDeathTest, AMistypedSeedDoesNotQuietlyRunAnother) {
  const Variable one("HOLDFAST_SIM_SEED", "17x");
  EXPECT_DEATH(seeds(3), "");
}

TEST(Replay, NamesTheSeedTheProgramAndTheTest) {
  const std::string line = replay(17, "Suite.Test/3");
  EXPECT_NE(line.find("HOLDFAST_SIM_SEED=17 '/"), std::string::npos) << line;
  EXPECT_NE(line.find("--gtest_filter='Suite.Test/3'"), std::string::npos) << line;
}

TEST(Replay, TheTraceMacroNamesTheRunningTest) {
  HOLDFAST_SIM_TRACE(5);
  testing::TestPartResultArray failures;
  {
    const testing::ScopedFakeTestPartResultReporter reporter(&failures);
    ADD_FAILURE() << "on purpose";
  }
  ASSERT_EQ(failures.size(), 1);
  EXPECT_NE(std::string(failures.GetTestPartResult(0).message()).find("Replay.TheTraceMacroNamesTheRunningTest"),
            std::string::npos);
}

}  // namespace
}  // namespace holdfast::sim
