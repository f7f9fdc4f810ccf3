// For tests of the real processes: a loop, its processes, and a record of what a child did.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "world/real_fixture.h"
#include "world/real_processes.h"

namespace holdfast::world {

/// What was told of one child.
struct Story {
  std::optional<ExitStatus> exit;
  std::string out;
  std::string err;
  std::string events;  ///< "stopped continued exit "

  ProcessEvents record() {
    return {
        .on_exit = [this](ExitStatus status) { exit = status, events += "exit "; },
        .on_stopped = [this] { events += "stopped "; },
        .on_continued = [this] { events += "continued "; },
        .on_output = [this](Stream stream, BytesView bytes) { (stream == Stream::Out ? out : err) += as_text(bytes); }};
  }
};

inline SpawnSpec command(std::vector<std::string> argv) {
  SpawnSpec spec;
  spec.argv = std::move(argv);
  return spec;
}

class ProcessesTest : public testing::Test {
 protected:
  explicit ProcessesTest(const ProcessPolicy& policy = {.fork_patience = std::chrono::seconds(60)})
      : processes_(loop_, /*subreaper=*/true, policy) {}
  ~ProcessesTest() override { EXPECT_EQ(processes_.kill_all(std::chrono::seconds(30)), std::vector<pid_t>()); }

  static SpawnSpec shell(const std::string& script) { return command({"sh", "-c", script}); }
  static SpawnSpec python(const std::string& script) { return command({"python3", "-c", script}); }
  std::unique_ptr<Process> spawn(const SpawnSpec& spec, ProcessEvents events) {
    auto process = processes_.spawn(spec, std::move(events));
    EXPECT_TRUE(process) << process.error().message();
    return process ? *std::move(process) : nullptr;
  }
  bool serve(const std::function<bool()>& met) { return serve_until(loop_, met); }
  /// Serves until the story's output holds a whole line, and returns the number in it.
  pid_t number_told(const Story& story) {
    EXPECT_TRUE(serve([&] { return story.out.find('\n') != std::string::npos; }));
    return std::stoi(story.out);
  }

  RealLoop loop_;
  RealProcesses processes_;
};

}  // namespace holdfast::world
