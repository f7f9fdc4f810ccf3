#include "prober.h"

#include <pthread.h>

#include <csignal>

namespace holdfast::python {

Prober::Prober(std::function<void(std::uint64_t probe)> ask) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([state = state_, ask = std::move(ask)] {
    std::unique_lock lock(state->mutex);
    for (;;) {
      state->wake.wait(lock, [&] { return state->ending || state->wanted; });
      if (state->ending) return;
      const std::uint64_t probe = *state->wanted;
      state->wanted.reset();
      state->asking = true;
      lock.unlock();
      ask(probe);
      lock.lock();
      state->asking = false;
    }
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Prober::~Prober() {
  bool stuck = false;
  {
    const std::lock_guard lock(state_->mutex);
    state_->ending = true;
    stuck = state_->asking;
  }
  state_->wake.notify_all();
  if (stuck) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void Prober::want(std::uint64_t probe) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->wanted = probe;
  }
  state_->wake.notify_all();
}

}  // namespace holdfast::python
