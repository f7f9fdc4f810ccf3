// A simulated machine: a disk, an address, a wall clock, power that can fail.
#pragma once

#include <cstdint>
#include <string>

#include "sim/disk_image.h"

namespace holdfast::sim {

class Cluster;

class Node {
 public:
  Node(Cluster& cluster, std::string name, std::uint32_t number, const SimRandom& random);
  const std::string& name() const { return name_; }
  std::uint32_t number() const { return number_; }
  /// How other machines reach it: "10.0.0.N".
  const std::string& host() const { return host_; }
  DiskImage& disk() { return disk_; }
  bool up() const { return up_; }

  /// Power fails: every process is gone, unsynced data and names are kept or lost by chance.
  void crash();
  /// Power is back. Programs must be spawned again; the main process (Cluster::main) is back as it was at first.
  void restart();
  /// `calls` more disk calls on this machine work, the one after crashes it.
  void crash_after(std::uint64_t calls);
  /// Disk calls made on this machine so far: what to sweep `crash_after` over.
  std::uint64_t disk_calls() const { return disk_calls_; }
  /// The wall clock jumps, either way.
  void jump_wall(Nanos by) { wall_offset_ += by; }
  Nanos wall(Nanos steady) const { return steady + wall_offset_; }

  /// One disk call: counted, and the crash asked for where it is due. False: the power is off.
  bool enter_disk_call();

 private:
  Cluster& cluster_;  ///< owns this
  std::string name_;
  std::uint32_t number_;
  std::string host_;
  DiskImage disk_;
  bool up_ = true;
  Nanos wall_offset_;
  std::uint64_t disk_calls_ = 0;
  std::uint64_t crash_at_;
};

}  // namespace holdfast::sim
