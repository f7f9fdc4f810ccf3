#include "world/real_loop.h"

#include <pthread.h>

#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace holdfast::world {
namespace {

constexpr int kBackgroundThreads = 4;

// Threads of ours take no signals: those are for the thread that the rest of the process expects to see them.
std::thread start_without_signals(std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(body));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

class RealLoop::Pool {
 public:
  Pool() {
    for (int i = 0; i < kBackgroundThreads; ++i) {
      threads_.push_back(start_without_signals([this] { serve(); }));
    }
  }

  ~Pool() {
    std::deque<std::function<void()>> dropped;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      dropped.swap(queue_);
    }
    wake_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

  void add(std::function<void()> job) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(job));
    }
    wake_.notify_one();
  }

 private:
  void serve() {
    pthread_setname_np(pthread_self(), "holdfast-io");
    for (;;) {
      std::function<void()> job;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
        if (stopping_) return;
        job = std::move(queue_.front());
        queue_.pop_front();
      }
      job();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

RealLoop::RealLoop() = default;

RealLoop::~RealLoop() { pool_.reset(); }

TimerId RealLoop::call_after(Nanos delay, std::function<void()> fn) {
  const TimerId id = ++last_timer_;
  auto timer = std::make_unique<asio::steady_timer>(context_, delay);
  timer->async_wait([this, id, fn = std::move(fn)](const asio::error_code&) {
    // Only the map says whether it may still run: a cancelled timer may have fired already.
    if (timers_.erase(id) != 0) fn();
  });
  timers_.emplace(id, std::move(timer));
  return id;
}

void RealLoop::cancel(TimerId id) { timers_.erase(id); }

void RealLoop::post(std::function<void()> fn) { asio::post(context_, std::move(fn)); }

void RealLoop::background(std::function<void()> work, std::function<void()> done) {
  if (pool_ == nullptr) pool_ = std::make_unique<Pool>();
  pool_->add([this, work = std::move(work), done = std::move(done)]() mutable {
    work();
    asio::post(context_, std::move(done));
  });
}

void RealLoop::run() {
  {
    const auto keep_serving = asio::make_work_guard(context_);
    context_.run();
  }
  context_.restart();  // after the guard is gone, whose end stops a context without work
}

void RealLoop::stop() { context_.stop(); }

}  // namespace holdfast::world
