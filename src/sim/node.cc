// Power failures and their count-down.
#include "sim/node.h"

#include <limits>

#include "sim/cluster.h"

namespace holdfast::sim {

namespace {
constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
/// Some day in 2033, so that a wall time is never mistaken for a steady one.
constexpr Nanos kWallStart = std::chrono::seconds(2'000'000'000);
}  // namespace

Node::Node(Cluster& cluster, std::string name, std::uint32_t number, const SimRandom& random)
    : cluster_(cluster),
      name_(std::move(name)),
      number_(number),
      host_("10.0." + std::to_string(number / 250) + "." + std::to_string(number % 250 + 1)),
      disk_(random),
      wall_offset_(kWallStart),
      crash_at_(kNever) {}

void Node::crash() {
  if (!up_) return;
  up_ = false;
  crash_at_ = kNever;
  cluster_.trace(nullptr, name_ + ": power fails");
  cluster_.processes().vanish(*this);
  disk_.crash();
}

void Node::restart() {
  if (up_) crash();
  up_ = true;
  cluster_.trace(nullptr, name_ + ": power is back");
  cluster_.revive_main(*this);
}

void Node::crash_after(std::uint64_t calls) { crash_at_ = disk_calls_ + calls; }

bool Node::enter_disk_call() {
  if (!up_) return false;
  if (disk_calls_ >= crash_at_) {
    crash();
    return false;
  }
  ++disk_calls_;
  return true;
}

}  // namespace holdfast::sim
