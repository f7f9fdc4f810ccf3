// The one seam to time, chance, disk, network and processes. Real: real_world.h. In memory: sim/sim_world.h.
#pragma once

#include "world/clock.h"
#include "world/disk.h"
#include "world/loop.h"
#include "world/net.h"
#include "world/processes.h"
#include "world/random.h"

namespace holdfast::world {

class World {
 public:
  virtual ~World() = default;
  virtual Clock& clock() = 0;
  virtual Random& random() = 0;
  virtual Loop& loop() = 0;
  virtual Disk& disk() = 0;
  virtual Net& net() = 0;
  virtual Processes& processes() = 0;
};

}  // namespace holdfast::world
