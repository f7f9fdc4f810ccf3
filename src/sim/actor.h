// A program inside the simulation: what a process runs instead of a main function.
#pragma once

#include <functional>
#include <memory>

#include "world/processes.h"

namespace holdfast::sim {

class SimWorld;

/// Made when its process starts, in which it sets up timers, listeners, connections and returns; it never calls
/// Loop::run. Destroyed some time after its process is dead, when its World no longer does anything. Loop::stop ends
/// the process with `exit_code`, as returning from main would.
class Actor {
 public:
  virtual ~Actor() = default;
  virtual int exit_code() const { return 0; }
};

/// `SimWorld` is a World; a program that is simulated only may use the rest of it too.
using ActorFactory = std::function<std::unique_ptr<Actor>(SimWorld&, const world::SpawnSpec&)>;

}  // namespace holdfast::sim
