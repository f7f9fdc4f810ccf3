#include "telemetry/ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <random>
#include <thread>

namespace holdfast::telemetry {
namespace {

std::int64_t fake_now = 0;
std::int64_t fake_clock() { return fake_now; }

/// Memory as mmap gives it: zeroed and aligned.
class Memory {
 public:
  explicit Memory(std::size_t slots) : words_(ring_bytes(slots) / 8) {}
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(words_)); }
  void put(std::size_t at, std::uint64_t value) { words_.at(at / 8) = value; }
  std::uint64_t get(std::size_t at) const { return words_.at(at / 8); }

 private:
  std::vector<std::uint64_t> words_;
};

std::vector<Step> steps_of(const std::vector<Event>& events) {
  std::vector<Step> steps;
  steps.reserve(events.size());
  for (const Event& event : events) steps.push_back(event.step);
  return steps;
}

TEST(Ring, GivesMarksInOrderWithTheirFields) {
  Memory memory(8);
  RingWriter writer(memory.bytes(), fake_clock);
  RingReader reader(memory.bytes());
  fake_now = 100;
  writer.epoch(7);
  writer.mark(Mark::StepBegin, 3);
  fake_now = 200;
  writer.mark(Mark::GradsReady, 3);
  std::vector<Event> events;
  EXPECT_EQ(reader.poll(events), 0u);
  EXPECT_THAT(events, testing::ElementsAre(Event{100, 3, 7, Mark::StepBegin, Phase::Train},
                                           Event{200, 3, 7, Mark::GradsReady, Phase::Train}));
  EXPECT_EQ(reader.poll(events), 0u);
  EXPECT_EQ(events.size(), 2u);
}

TEST(Ring, LiesInMemoryAsItsFormatPageSays) {
  Memory memory(4);
  RingWriter writer(memory.bytes(), fake_clock);
  fake_now = 0x1122334455667788;
  writer.epoch(9);
  writer.mark(Mark::Attached, -1);
  writer.mark(Mark::StepEnd, 5);
  const auto at = [&](std::size_t offset) { return memory.get(offset); };
  EXPECT_EQ(std::memcmp(memory.bytes().data(), "HOFRING1", 8), 0);
  EXPECT_EQ(at(8), 1U | std::uint64_t{4} << 32U);
  EXPECT_EQ(at(64), 2u);
  EXPECT_EQ(at(72), 1u);
  EXPECT_EQ(at(128), 1u);
  EXPECT_EQ(at(256), 1u);
  EXPECT_EQ(at(264), 0x1122334455667788u);
  EXPECT_EQ(at(272), ~std::uint64_t{0});
  EXPECT_EQ(at(280), 9u);
  EXPECT_EQ(at(288), 2u);
  EXPECT_EQ(at(304), 5u);
  EXPECT_EQ(at(312), 0x0003000600000009u);
  for (const std::size_t offset : {8U, 16U, 24U}) EXPECT_EQ(at(128 + offset), at(288 + offset));
}

TEST(Ring, CountsWhatAnOverrunLost) {
  Memory memory(8);
  RingWriter writer(memory.bytes(), fake_clock);
  RingReader reader(memory.bytes());
  for (Step step = 0; step < 20; ++step) writer.mark(Mark::StepBegin, step);
  std::vector<Event> events;
  EXPECT_EQ(reader.poll(events), 12u);
  EXPECT_THAT(steps_of(events), testing::ElementsAre(12, 13, 14, 15, 16, 17, 18, 19));
}

TEST(Ring, StatusSurvivesAnOverrun) {
  Memory memory(2);
  RingWriter writer(memory.bytes(), fake_clock);
  RingReader reader(memory.bytes());
  fake_now = 50;
  writer.mark(Mark::StepBegin, 9);
  for (int i = 0; i < 100; ++i) writer.mark(Mark::SnapshotEnd, 8);
  EXPECT_EQ(reader.status(), (RingStatus{Phase::Train, 9, 50, 0}));
}

TEST(Ring, StatusFollowsStepsAndPhases) {
  Memory memory(64);
  RingWriter writer(memory.bytes(), fake_clock);
  RingReader reader(memory.bytes());
  EXPECT_EQ(reader.status(), std::nullopt);
  const auto at = [&](std::int64_t now) { fake_now = now; };
  at(10), writer.mark(Mark::StepBegin, 0);
  EXPECT_EQ(reader.status(), (RingStatus{Phase::Train, 0, 10, 0}));
  at(20), writer.mark(Mark::StepEnd, 0);
  EXPECT_EQ(reader.status(), (RingStatus{Phase::Between, 0, 20, 0}));
  at(30), writer.phase(Phase::Evaluate, 0);
  EXPECT_EQ(reader.status(), (RingStatus{Phase::Evaluate, 0, 30, 0}));
  at(40), writer.mark(Mark::StepBegin, 1);
  EXPECT_EQ(reader.status(), (RingStatus{Phase::Train, 1, 40, 0}));
  at(50), writer.mark(Mark::Finished, 2);
  EXPECT_EQ(reader.status(), (RingStatus{Phase::After, 2, 50, 0}));
}

TEST(Ring, SayingAPhaseTwiceDoesNotRestartIt) {
  Memory memory(64);
  RingWriter writer(memory.bytes(), fake_clock);
  RingReader reader(memory.bytes());
  fake_now = 10;
  writer.mark(Mark::StepBegin, 4);
  fake_now = 20;
  writer.phase(Phase::Train, 4);
  EXPECT_EQ(reader.status()->since_ns, 10);
}

TEST(Ring, ASecondWriterOfTheSameMemoryContinues) {
  Memory memory(8);
  RingReader reader(memory.bytes());
  RingWriter(memory.bytes(), fake_clock).mark(Mark::Attached, 1);
  RingWriter(memory.bytes(), fake_clock).mark(Mark::LoopBegin, 2);
  std::vector<Event> events;
  EXPECT_EQ(reader.poll(events), 0u);
  EXPECT_THAT(steps_of(events), testing::ElementsAre(1, 2));
}

TEST(Ring, CheckSaysWhatIsWrong) {
  Memory memory(8);
  RingReader reader(memory.bytes());
  EXPECT_EQ(reader.check().error().code(), Code::Unavailable);
  RingWriter writer(memory.bytes(), fake_clock);
  EXPECT_TRUE(reader.check());
  EXPECT_EQ(RingReader(memory.bytes().first(ring_bytes(4))).check().error().code(), Code::Corrupt);
  EXPECT_EQ(RingReader(memory.bytes().first(100)).check().error().code(), Code::BadInput);
  EXPECT_EQ(RingReader(memory.bytes().subspan(1)).check().error().code(), Code::BadInput);
  memory.put(8, 2U | std::uint64_t{8} << 32U);
  EXPECT_EQ(reader.check().error().message(), "ring version 2, want 1");
  memory.put(0, 12345);
  EXPECT_EQ(reader.check().error().code(), Code::Corrupt);
}

TEST(Ring, AWriterStoppedInTheMiddleHidesOnlyItsLastMark) {
  Memory memory(8);
  RingWriter writer(memory.bytes(), fake_clock);
  RingReader reader(memory.bytes());
  writer.mark(Mark::StepBegin, 1);
  memory.put(64, 2);  // the second slot is claimed, never written
  std::vector<Event> events;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(reader.poll(events), 0u);
  EXPECT_THAT(steps_of(events), testing::ElementsAre(1));
  EXPECT_EQ(reader.status()->step, 1);
}

TEST(Ring, ASlotGivenUpIsSkippedAfterAWhileAndCountedLost) {
  Memory memory(8);
  RingWriter writer(memory.bytes(), fake_clock);
  RingReader reader(memory.bytes());
  memory.put(64, 1);  // the first slot is claimed, never written
  writer.mark(Mark::StepBegin, 5);
  std::vector<Event> events;
  std::uint64_t lost = 0;
  for (int i = 0; i < 20; ++i) lost += reader.poll(events);
  EXPECT_EQ(lost, 1u);
  EXPECT_THAT(steps_of(events), testing::ElementsAre(5));
}

TEST(Ring, AThreadAWholeRingSlowerLosesItsMarkInsteadOfTearingANewerOne) {
  Memory memory(2);
  RingWriter writer(memory.bytes(), fake_clock);
  RingReader reader(memory.bytes());
  memory.put(kRingHeaderBytes, std::uint64_t{1} << 63U | 1U);  // a thread is in the middle of slot 0
  for (Step step = 0; step < 4; ++step) writer.mark(Mark::StepBegin, step);
  std::vector<Event> events;
  std::uint64_t lost = 0;
  for (int i = 0; i < 20; ++i) lost += reader.poll(events);
  EXPECT_THAT(steps_of(events), testing::ElementsAre(3));
  EXPECT_EQ(lost, 3u);
}

TEST(Ring, EventsOutOfRangeAreCountedLost) {
  Memory memory(8);
  RingWriter writer(memory.bytes(), fake_clock);
  RingReader reader(memory.bytes());
  for (Step step = 0; step < 4; ++step) writer.mark(Mark::StepBegin, step);
  const auto slot = [](std::size_t index) { return ring_bytes(index); };
  memory.put(slot(0) + 8, ~std::uint64_t{0});                // time -1
  memory.put(slot(1) + 16, static_cast<std::uint64_t>(-2));  // step -2
  memory.put(slot(2) + 24, std::uint64_t{kMarks} << 32U);    // no such mark
  memory.put(slot(3) + 24, std::uint64_t{kPhases} << 48U);   // no such phase
  std::vector<Event> events;
  EXPECT_EQ(reader.poll(events), 4u);
  EXPECT_TRUE(events.empty());
}

TEST(Ring, ReaderSurvivesGarbage) {
  std::mt19937_64 random(1);  // NOLINT(bugprone-random-generator-seed): a test replays
  Memory memory(16);
  RingWriter writer(memory.bytes(), fake_clock);
  RingReader reader(memory.bytes());
  std::vector<Event> events;
  for (int round = 0; round < 20000; ++round) {
    const std::size_t at = 16 + 8 * (random() % ((ring_bytes(16) - 16) / 8));
    memory.put(at, random() >> random() % 64);
    events.clear();
    reader.poll(events);
    ASSERT_LE(events.size(), 16u);
    for (const Event& event : events) ASSERT_LT(static_cast<std::size_t>(event.mark), kMarks);
    if (const auto status = reader.status()) {
      ASSERT_GE(status->since_ns, 0);
    }
  }
}

TEST(Ring, TwoThreadsWriteWhileAnotherReads) {
  constexpr Step marks_each = 20000;
  Memory memory(256);
  RingWriter writer(memory.bytes());
  RingReader reader(memory.bytes());
  std::atomic<int> writing{2};
  const auto write = [&](Mark mark) {
    for (Step step = 0; step < marks_each; ++step) {
      writer.mark(mark, step);
      if (step % 64 == 0) std::this_thread::yield();
    }
    --writing;
  };
  std::thread main([&] { write(Mark::StepBegin); });
  std::thread native([&] { write(Mark::SnapshotEnd); });
  std::array<Step, kMarks> last;
  last.fill(kNoStep);
  std::uint64_t seen = 0;
  std::uint64_t lost = 0;
  std::vector<Event> events;
  const auto take = [&] {
    events.clear();
    lost += reader.poll(events);
    seen += events.size();
    for (const Event& event : events) {
      Step& before = last[static_cast<std::size_t>(event.mark)];
      ASSERT_GT(event.step, before);  // each thread's marks come in its order, none twice, none torn
      before = event.step;
    }
    if (const auto status = reader.status()) {
      ASSERT_EQ(status->phase, Phase::Train);
    }
  };
  while (writing > 0) take();
  main.join();
  native.join();
  for (int i = 0; i < 10; ++i) take();
  EXPECT_EQ(seen + lost, 2u * marks_each);
}

TEST(Ring, AWriterKilledAtAnyInstructionLeavesItReadable) {
  for (int kill_round = 0; kill_round < 20; ++kill_round) {
    const std::size_t size = ring_bytes(1024);
    void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    const std::span memory(static_cast<std::byte*>(mapped), size);
    const pid_t child = fork();
    if (child == 0) {
      RingWriter writer(memory);
      for (Step step = 0; step < 5'000'000; ++step) writer.mark(Mark::StepBegin, step);
      _exit(0);
    }
    RingReader reader(memory);
    std::vector<Event> events;
    while (events.size() < 100) reader.poll(events);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    for (int i = 0; i < 20; ++i) reader.poll(events);
    for (std::size_t i = 1; i < events.size(); ++i) ASSERT_GT(events[i].step, events[i - 1].step);
    const auto status = reader.status();
    ASSERT_TRUE(status);
    EXPECT_LE(std::abs(status->step - events.back().step), 1);
    munmap(mapped, size);
  }
}

TEST(Marks, EveryNumberHasAName) {
  for (std::size_t i = 0; i < kMarks; ++i) EXPECT_STRNE(mark_name(static_cast<Mark>(i)), "?");
  for (std::size_t i = 0; i < kPhases; ++i) EXPECT_STRNE(phase_name(static_cast<Phase>(i)), "?");
  EXPECT_STREQ(mark_name(static_cast<Mark>(kMarks)), "?");
  EXPECT_STREQ(phase_name(static_cast<Phase>(kPhases)), "?");
}

}  // namespace
}  // namespace holdfast::telemetry
