#include "app/secret.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

namespace holdfast::app {
namespace {

class Counting final : public world::Random {
 public:
  std::uint64_t next() override { return ++last_; }

 private:
  std::uint64_t last_ = 0;
};

class Secret : public testing::Test {
 protected:
  void SetUp() override { ::unsetenv("HOLDFAST_SECRET"); }
  void TearDown() override { ::unsetenv("HOLDFAST_SECRET"); }
  std::string why_not(const std::string& host, const std::string& file = "") {
    auto secret = run_secret({host, 0}, file, random_);
    return secret ? "accepted" : secret.error().message();
  }
  Counting random_;
};

TEST_F(Secret, OnLoopbackItIsMadeUp) {
  auto first = run_secret({"127.0.0.1", 0}, "", random_);
  auto second = run_secret({"127.0.0.1", 0}, "", random_);
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  EXPECT_EQ(first->size(), 64u);
  EXPECT_NE(*first, *second);
}

TEST_F(Secret, OffLoopbackItMustBeGiven) {
  EXPECT_NE(why_not("0.0.0.0").find("not loopback"), std::string::npos);
  ::setenv("HOLDFAST_SECRET", "0123456789abcdef", 1);
  EXPECT_EQ(why_not("0.0.0.0"), "accepted");
  ::setenv("HOLDFAST_SECRET", "short", 1);
  EXPECT_NE(why_not("0.0.0.0").find("shorter than 16"), std::string::npos);
}

TEST_F(Secret, AFileThatOthersCanReadIsRefused) {
  const std::string path = testing::TempDir() + "/holdfast-secret-" + std::to_string(::getpid());
  std::ofstream(path) << "0123456789abcdef\n";
  ::chmod(path.c_str(), 0644);
  EXPECT_NE(why_not("0.0.0.0", path).find("chmod 600"), std::string::npos);
  ::chmod(path.c_str(), 0600);
  auto secret = run_secret({"0.0.0.0", 0}, path, random_);
  ASSERT_TRUE(secret);
  EXPECT_EQ(*secret, "0123456789abcdef");
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace holdfast::app
