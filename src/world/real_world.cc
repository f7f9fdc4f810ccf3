#include "world/real_world.h"

#include <sys/random.h>
#include <time.h>

#include "base/check.h"
#include "world/real_disk.h"
#include "world/real_loop.h"
#include "world/real_net.h"
#include "world/real_processes.h"

namespace holdfast::world {
namespace {

Nanos read_clock(clockid_t which) {
  timespec now{};
  CHECK(::clock_gettime(which, &now) == 0);
  return std::chrono::seconds(now.tv_sec) + Nanos(now.tv_nsec);
}

class RealClock final : public Clock {
 public:
  Nanos steady() override { return read_clock(CLOCK_MONOTONIC); }
  Nanos wall() override { return read_clock(CLOCK_REALTIME); }
};

class RealRandom final : public Random {
 public:
  std::uint64_t next() override {
    std::uint64_t value = 0;
    CHECK(::getrandom(&value, sizeof value, 0) == sizeof value);  // 8 bytes are never interrupted
    return value;
  }
};

class RealWorld final : public World {
 public:
  explicit RealWorld(const RealWorldOptions& options) : net_(loop_, random_), processes_(loop_, options.subreaper) {}
  Clock& clock() override { return clock_; }
  Random& random() override { return random_; }
  Loop& loop() override { return loop_; }
  Disk& disk() override { return disk_; }
  Net& net() override { return net_; }
  Processes& processes() override { return processes_; }

 private:
  RealClock clock_;
  RealRandom random_;
  RealDisk disk_;
  RealLoop loop_;
  RealNet net_;
  RealProcesses processes_;
};

}  // namespace

std::unique_ptr<World> make_real_world(const RealWorldOptions& options) { return std::make_unique<RealWorld>(options); }

}  // namespace holdfast::world
