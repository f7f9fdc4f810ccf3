// This process's seat in a run: its member, and the thread that the member's loop runs on.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "prober.h"
#include "run/member.h"
#include "world/real_world.h"

namespace holdfast::python {

class Seat {
 public:
  /// Reads HOLDFAST_WORKER, HOLDFAST_ADDRESS, HOLDFAST_SECRET and HOLDFAST_RING_FD, and connects. `ask` answers probes.
  /// Errors: BadInput (not started by `holdfast run`), Unavailable (no agent there).
  static Result<std::unique_ptr<Seat>> take(std::function<void(std::uint64_t probe)> ask);
  ~Seat();
  run::Member& member() { return *member_; }

 private:
  Seat() = default;

  std::unique_ptr<world::World> world_;
  std::unique_ptr<Prober> prober_;
  std::unique_ptr<run::Member> member_;
  std::thread loop_;
};

}  // namespace holdfast::python
