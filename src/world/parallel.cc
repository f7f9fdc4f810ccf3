#include "world/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::world {

void parallel_for(unsigned threads, std::size_t count, const std::function<void(std::size_t)>& body) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) body(i);
  };
  std::vector<std::thread> others;
  const std::size_t wanted = std::min<std::size_t>(threads, count);
  for (std::size_t i = 1; i < wanted; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
}

Status parallel_try(unsigned threads, std::size_t count, const std::function<Status(std::size_t)>& body) {
  std::mutex mutex;
  std::atomic<bool> failed = false;
  std::optional<std::pair<std::size_t, Error>> failure;
  parallel_for(threads, count, [&](std::size_t i) {
    if (failed) return;
    Status done = body(i);
    if (done) return;
    failed = true;
    const std::lock_guard lock(mutex);
    if (!failure || i < failure->first) failure.emplace(i, std::move(done).error());
  });
  if (failure) return std::move(failure->second);
  return Ok{};
}

// Also on cores that are never idle such a thread gets on, by about 1/300 of a core.
void giving_way(const std::function<void()>& task) {
  std::thread thread([&] {
    const sched_param none{};
    (void)::sched_setscheduler(0, SCHED_IDLE, &none);  // 0: this thread
    task();
  });
  thread.join();
}

bool gives_way() { return ::sched_getscheduler(0) == SCHED_IDLE; }

unsigned usable_cpus() {
  cpu_set_t cpus;
  if (::sched_getaffinity(0, sizeof cpus, &cpus) != 0) return std::max(1U, std::thread::hardware_concurrency());
  return static_cast<unsigned>(std::max(1, CPU_COUNT(&cpus)));
}

}  // namespace holdfast::world
