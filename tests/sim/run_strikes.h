// Faults that hit a simulated run at moments drawn from its seed.
#pragma once

#include <vector>

#include "tests/sim/run_world.h"

namespace holdfast::trial {

enum class Strike : std::uint8_t {
  KillOne,
  KillRankZero,
  KillTwo,
  KillAll,
  KillAtACall,  ///< inside whatever a rank is doing: before one of its next calls into its World
  KillSpare,
  KillForkServer,
  KillStore,  ///< the store for plain scripts
  Stop,       ///< SIGSTOP for good
  StopAWhile,
  Freeze,  ///< no CPU for good, and nobody is told
  FreezeAWhile,
  CutOff,  ///< none of its messages passes, for good
  CutOffAWhile,
  JumpWallClock,
  FillDisk,   ///< for a while
  SlowDisk,   ///< for a while
  FailDisk,   ///< writes and syncs fail by chance, for a while
  FailNames,  ///< all that goes by names (create, open, rename, list, ...) fails by chance, for a while
  FreezeAll,
  FreezeLauncherAWhile,
  FlipAndKillAll,  ///< a byte of the newest checkpoint
  KillLauncher,
  KillLauncherAtACall,
  PowerFailure,
  PowerFailureAtACall,  ///< before one of the next disk calls
  AskToStop,            ///< SIGTERM to the launcher
};

class Strikes {
 public:
  /// `world` outlives this object. Between `least` and `most` strikes, each of one of `kinds`, often close together.
  Strikes(RunWorld& world, sim::SimRandom random, const std::vector<Strike>& kinds, int least, int most);
  /// To be called between events: fires what is due.
  void look();
  int fired() const { return fired_; }

 private:
  struct Plan {
    Step at = 0;  ///< once a rank has begun this step
    Nanos after{};
    Strike kind{};
  };
  void fire(Strike kind);
  std::vector<pid_t> victims(std::size_t count);
  void kill(const std::vector<pid_t>& pids);
  void hold(void (sim::SimWorld::*begin)(), void (sim::SimWorld::*end)(), bool for_good);
  void stop(bool for_good);
  void hurt_disk(const sim::DiskPolicy& policy);
  void flip_newest();

  RunWorld& world_;
  sim::SimRandom random_;
  std::vector<Plan> plans_;
  std::size_t next_ = 0;
  int fired_ = 0;
};

}  // namespace holdfast::trial
