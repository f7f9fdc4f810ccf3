#include "world/fork_message.h"

#include <gtest/gtest.h>

namespace holdfast::world {
namespace {

TEST(ForkMessage, AsksInTheDocumentedForm) {
  const auto text = encode({.id = 3, .argv = {"train.py", "a"}, .env = {{"RANK", "2"}}, .cwd = "/x", .ring = true});
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, R"({"argv":["train.py","a"],"cwd":"/x","env":{"RANK":"2"},"fds":["out","err","ring"],"fork":3})");
}

TEST(ForkMessage, RefusesARequestThatNoPacketHolds) {
  const auto text = encode({.id = 1, .argv = {std::string(200'000, 'x')}, .env = {}, .cwd = {}});
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code(), Code::BadInput);
  EXPECT_FALSE(encode({.id = 1, .argv = {"\xff"}, .env = {}, .cwd = {}}));
}

TEST(ForkMessage, ReadsTheGreeting) {
  const auto message =
      parse_fork_message(R"({"ready": true, "threads": 2, "version": "0.1.0", "thread_modules": ["numpy"]})");
  ASSERT_TRUE(message);
  const auto& ready = std::get<ForkReady>(*message);
  EXPECT_TRUE(ready.ready);
  EXPECT_EQ(ready.threads, 2);
  EXPECT_EQ(ready.version, "0.1.0");
  EXPECT_EQ(ready.thread_modules, std::vector<std::string>{"numpy"});
}

TEST(ForkMessage, ReadsARefusalToServe) {
  const auto message = parse_fork_message(R"({"ready": false, "why": "no torch"})");
  ASSERT_TRUE(message);
  EXPECT_FALSE(std::get<ForkReady>(*message).ready);
  EXPECT_EQ(std::get<ForkReady>(*message).why, "no torch");
}

TEST(ForkMessage, ReadsBothAnswers) {
  const auto done = parse_fork_message(R"({"forked": 7, "pid": 42})");
  ASSERT_TRUE(done);
  EXPECT_EQ(std::get<ForkDone>(*done).id, 7u);
  EXPECT_EQ(std::get<ForkDone>(*done).pid, 42);
  const auto failed = parse_fork_message(R"({"failed": 8, "why": "no memory"})");
  ASSERT_TRUE(failed);
  EXPECT_EQ(std::get<ForkFailed>(*failed).id, 8u);
  EXPECT_EQ(std::get<ForkFailed>(*failed).why, "no memory");
}

TEST(ForkMessage, RefusesEverythingElse) {
  for (const char* text :
       {"", "{", "[]", "7", "null", "{}", R"({"forked": 1})", R"({"forked": 1, "pid": -5})",
        R"({"forked": 1, "pid": "5"})", R"({"forked": 1, "pid": 99999999999})", R"({"forked": -1, "pid": 5})",
        R"({"forked": 1.5, "pid": 5})", R"({"forked": 71111111111111111111111, "pid": 5})", R"({"failed": 1})",
        R"({"ready": 1})", R"({"ready": true})", R"({"ready": false})",
        R"({"ready": true, "threads": 1, "thread_modules": [1]})", "\xff\xfe"}) {
    const auto message = parse_fork_message(text);
    ASSERT_FALSE(message) << text;
    EXPECT_EQ(message.error().code(), Code::BadInput) << text;
  }
}

}  // namespace
}  // namespace holdfast::world
