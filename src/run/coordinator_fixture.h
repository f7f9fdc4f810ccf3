// For tests: a coordinator and what it ordered, with the ranks' side played by hand.
#pragma once

#include <gtest/gtest.h>

#include <csignal>
#include <optional>
#include <vector>

#include "run/coordinator.h"

namespace holdfast::run {

using std::chrono::milliseconds;
using std::chrono::seconds;
using world::Nanos;

class CoordinatorTest : public testing::Test {
 protected:
  void begin(std::uint32_t world_size, CoordinatorPolicy policy = {}) {
    policy.world_size = world_size;
    coordinator_.emplace(policy, RunFacts{});
    take(coordinator_->start(now_));
  }
  void take(const Coordinator::Actions& actions) { done_.insert(done_.end(), actions.begin(), actions.end()); }
  WorkerId worker(Rank rank) { return coordinator_->worker_of(rank).value_or(0); }
  void say(WorkerId from, const Message& message) { take(coordinator_->on_message(now_, from, message)); }
  void ready(Rank rank, Step applied) { say(worker(rank), Ready{.epoch = 0, .applied = applied, .round = ++round_}); }
  void restored(Rank rank) { say(worker(rank), Restored{.epoch = coordinator_->epoch(), .step = 0}); }
  void die(WorkerId id, int signal = SIGKILL) {
    take(coordinator_->on_exit(now_, id, {.code = 0, .signal = signal}, ""));
  }
  void step_done(Step step) {
    coordinator_->on_step_begun(step);
    take(coordinator_->on_step_done(now_ += milliseconds(1), step));
  }

  // All ranks reach the loop and complete step 0.
  void reach_loop() {
    const Rank size = coordinator_->policy().world_size;
    for (Rank rank = 0; rank < size; ++rank) say(worker(rank), Attach{});
    for (Rank rank = 0; rank < size; ++rank) ready(rank, 0);
    take(coordinator_->on_checkpoint(now_, kNoStep, ""));
    for (Rank rank = 0; rank < size; ++rank) restored(rank);
    step_done(0);
    for (WorkerId spare : spawned_spares()) say(spare, Park{});
  }

  std::vector<WorkerId> spawned_spares() {
    std::vector<WorkerId> spares;
    for (const Action& action : done_) {
      if (const auto* spawn = std::get_if<SpawnSpare>(&action)) spares.push_back(spawn->worker);
    }
    return spares;
  }
  template <typename Kind>
  std::vector<Kind> ordered() {
    std::vector<Kind> found;
    for (const Action& action : done_) {
      if (const auto* match = std::get_if<Kind>(&action)) found.push_back(*match);
    }
    return found;
  }
  template <typename Body>
  std::vector<std::pair<WorkerId, Body>> sent() {
    std::vector<std::pair<WorkerId, Body>> found;
    for (const SendTo& each : ordered<SendTo>()) {
      if (const auto* body = std::get_if<Body>(&each.message)) found.emplace_back(each.worker, *body);
    }
    return found;
  }
  std::optional<EndRun> end() {
    const auto ends = ordered<EndRun>();
    return ends.empty() ? std::nullopt : std::optional(ends.back());
  }

  Nanos now_ = seconds(1);
  std::optional<Coordinator> coordinator_;
  Coordinator::Actions done_;
  std::uint64_t round_ = 0;
};

}  // namespace holdfast::run
