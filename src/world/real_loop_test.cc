#include "world/real_loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "world/real_fixture.h"

namespace holdfast::world {
namespace {

using std::chrono::milliseconds;

TEST(RealLoop, RunsTimersInTheOrderOfTheirTimes) {
  RealLoop loop;
  std::string order;
  loop.call_after(milliseconds(20), [&] { order += "c", loop.stop(); });
  loop.call_after(milliseconds(10), [&] { order += "b"; });
  loop.call_after(milliseconds(0), [&] { order += "a"; });
  loop.run();
  EXPECT_EQ(order, "abc");
}

TEST(RealLoop, NeverRunsACancelledTimer) {
  RealLoop loop;
  bool ran = false;
  const TimerId later = loop.call_after(milliseconds(1), [&] { ran = true; });
  loop.call_after(milliseconds(0), [&] {
    std::this_thread::sleep_for(milliseconds(5));  // by now it has expired, too
    loop.cancel(later);
  });
  serve_for(loop, milliseconds(20));
  EXPECT_FALSE(ran);
}

TEST(RealLoop, IgnoresTheCancellingOfFiredAndUnknownTimers) {
  RealLoop loop;
  TimerId id = kNoTimer;
  bool ran = false;
  id = loop.call_after(milliseconds(0), [&] {
    loop.cancel(id);
    ran = true;
  });
  ASSERT_TRUE(serve_until(loop, [&] { return ran; }));
  loop.cancel(id);
  loop.cancel(12345);
  loop.cancel(kNoTimer);
}

TEST(RealLoop, RunsWhatOtherThreadsPostOnItsOwnThread) {
  RealLoop loop;
  int count = 0;
  std::thread::id seen;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 100; ++k) loop.post([&] { ++count, seen = std::this_thread::get_id(); });
    });
  }
  EXPECT_TRUE(serve_until(loop, [&] { return count == 400; }));
  EXPECT_EQ(seen, std::this_thread::get_id());
  for (auto& thread : threads) thread.join();
}

TEST(RealLoop, DoesBackgroundWorkElsewhereAndTellsOnTheLoop) {
  RealLoop loop;
  std::thread::id worked;
  std::thread::id told;
  bool done = false;
  loop.background([&] { worked = std::this_thread::get_id(); },
                  [&] { told = std::this_thread::get_id(), done = true; });
  ASSERT_TRUE(serve_until(loop, [&] { return done; }));
  EXPECT_NE(worked, std::this_thread::get_id());
  EXPECT_EQ(told, std::this_thread::get_id());
}

TEST(RealLoop, FinishesBegunWorkBeforeItIsDestroyed) {
  std::atomic<bool> begun = false;
  std::atomic<bool> finished = false;
  {
    RealLoop loop;
    loop.background(
        [&] {
          begun = true;
          std::this_thread::sleep_for(milliseconds(20));
          finished = true;
        },
        [] {});
    while (!begun) std::this_thread::yield();
  }
  EXPECT_TRUE(finished);
}

TEST(RealLoop, CanBeRunAgainAfterAStop) {
  RealLoop loop;
  int runs = 0;
  for (int i = 0; i < 2; ++i) {
    loop.post([&] { ++runs, loop.stop(); });
    loop.run();
  }
  EXPECT_EQ(runs, 2);
}

}  // namespace
}  // namespace holdfast::world
