// Acts out a fault plan on a run, and remembers when each fault really began.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "run/coordinator.h"
#include "run/fault_plan.h"
#include "run/workers.h"
#include "telemetry/marks.h"

namespace holdfast::run {

/// A planned fault and what became of it.
struct Injected {
  PlannedFault plan;
  bool fired = false;                    ///< orders were given
  std::optional<world::Nanos> began_at;  ///< the fault itself began
};

class Injector {
 public:
  /// All outlive this object. `newest_checkpoint` gives its directory, "" where there is none.
  Injector(world::World& world, const RunOptions& options, Workers& workers, const Coordinator& coordinator,
           std::function<std::string()> newest_checkpoint);
  void on_mark(Rank rank, const telemetry::Event& event);
  void on_mode(Mode mode);
  const std::vector<Injected>& faults() const { return faults_; }

 private:
  void fire(Injected& fault, world::Nanos now);
  void order(Injected& fault, const char* kind);
  void steal_cpu(Rank rank, WorkerId worker, world::Nanos until, bool stop);
  void flip_newest_checkpoint();
  void kill(Rank rank);

  world::World& world_;
  Workers& workers_;
  const Coordinator& coordinator_;
  std::function<std::string()> newest_checkpoint_;
  std::vector<Injected> faults_;
  std::optional<Rank> kill_next_recovery_;
};

}  // namespace holdfast::run
