#include "store/shard_in_background.h"

#include <gtest/gtest.h>
#include <sched.h>

#include "sim/sim_world.h"

namespace holdfast::store {
namespace {

/// Notes how the thread that writes to it is scheduled.
class WatchedDisk final : public world::Disk {
 public:
  explicit WatchedDisk(world::Disk& disk) : disk_(disk) {}
  Result<std::unique_ptr<world::WritableFile>> create(const std::string& path) override {
    policy = ::sched_getscheduler(0);
    return disk_.create(path);
  }
  Result<std::unique_ptr<world::ReadableFile>> open(const std::string& path) override { return disk_.open(path); }
  Status rename(const std::string& from, const std::string& to) override { return disk_.rename(from, to); }
  Status remove(const std::string& path) override { return disk_.remove(path); }
  Status make_dirs(const std::string& path) override { return disk_.make_dirs(path); }
  Status sync_dir(const std::string& path) override { return disk_.sync_dir(path); }
  Result<std::vector<std::string>> list(const std::string& path) override { return disk_.list(path); }
  bool exists(const std::string& path) override { return disk_.exists(path); }

  int policy = -1;

 private:
  world::Disk& disk_;
};

TEST(ShardInBackground, OnlyALargeOneGivesWayAndBothAreWritten) {
  sim::SimWorld world(1);
  WatchedDisk disk(world.disk());
  for (const bool large : {false, true}) {
    const Bytes bytes(large ? kGivesWayFrom : kGivesWayFrom - 1, std::byte{3});
    const TensorData tensor{"w", "U8", {bytes.size()}, bytes};
    const std::string dir = large ? "/large" : "/small";
    const auto record = write_shard_in_background(disk, dir, 0, 1, std::span(&tensor, 1));
    ASSERT_TRUE(record) << record.error().message();
    EXPECT_EQ(disk.policy == SCHED_IDLE, large);
    EXPECT_TRUE(verify_shard(disk, dir, *record));
  }
}

}  // namespace
}  // namespace holdfast::store
