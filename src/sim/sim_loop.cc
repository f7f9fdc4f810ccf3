#include "sim/sim_loop.h"

#include <algorithm>

#include "base/check.h"

namespace holdfast::sim {

namespace {
constexpr int kBackgroundThreads = 4;
constexpr Nanos kForEver = Nanos::max();
}  // namespace

TimerId SimLoop::call_after(Nanos delay, std::function<void()> fn) {
  Schedule& schedule = cluster_.schedule();
  const Nanos late = cluster_.processes().random().draw(cluster_.policy.loop.timer_late);
  const Nanos room = kForEver - schedule.now() - late;
  return schedule.at(schedule.now() + std::clamp(delay, Nanos{}, room) + late, process_.owner, std::move(fn));
}

void SimLoop::cancel(TimerId id) { cluster_.schedule().cancel(id); }

void SimLoop::post(std::function<void()> fn) {
  cluster_.schedule().at(cluster_.schedule().now(), process_.owner, std::move(fn));
}

void SimLoop::background(std::function<void()> work, std::function<void()> done) {
  if (!process_.alive) return;
  jobs_.push_back({std::move(work), std::move(done)});
  if (busy_ < kBackgroundThreads) start_job();
}

void SimLoop::reset() {
  jobs_.clear();
  busy_ = 0;
  stopping_ = false;
}

void SimLoop::start_job() {
  ++busy_;
  auto job = std::make_shared<Job>(std::move(jobs_.front()));  // shared: std::function wants to be copied
  jobs_.pop_front();
  Schedule& schedule = cluster_.schedule();
  const Nanos start = schedule.now() + cluster_.processes().random().draw(cluster_.policy.loop.background_start);
  schedule.at(start, process_.owner, [this, job] {
    process_.io_cost = Nanos{};
    job->work();
    job->work = nullptr;
    cluster_.schedule().at(cluster_.schedule().now() + process_.io_cost, process_.owner, [this, job] {
      --busy_;
      if (!jobs_.empty()) start_job();
      job->done();
    });
  });
}

void SimLoop::run() {
  CHECK(process_.actor == nullptr && !cluster_.in_event());
  while (!stopping_ && !cluster_.schedule().idle()) cluster_.run_next(cluster_.schedule().next_time());
  stopping_ = false;
}

void SimLoop::stop() {
  if (!process_.spec.argv.empty()) {
    const int code = process_.actor == nullptr ? 0 : process_.actor->exit_code();
    cluster_.processes().end(process_, {.code = code, .signal = 0});
  } else {
    stopping_ = true;
  }
}

}  // namespace holdfast::sim
