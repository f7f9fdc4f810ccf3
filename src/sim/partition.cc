// Partitions: what is sent across one waits, and after a silence the connection is given up.
#include <utility>

#include "sim/cluster.h"
#include "sim/network.h"

namespace holdfast::sim {

void Network::partition(const Node& a, const Node& b) {
  cluster_.trace(nullptr, "partition of " + a.name() + " and " + b.name());
  partitions_.insert(pair_of(a, b));
  watch_silence();
}

void Network::heal(const Node& a, const Node& b) {
  cluster_.trace(nullptr, a.name() + " and " + b.name() + " are connected again");
  partitions_.erase(pair_of(a, b));
  flush_blocked();
}

void Network::isolate(const ProcessRecord& process) {
  cluster_.trace(&process, "is cut off");
  isolated_.insert(&process);
  watch_silence();
}

void Network::rejoin(const ProcessRecord& process) {
  cluster_.trace(&process, "is connected again");
  isolated_.erase(&process);
  flush_blocked();
}

void Network::heal_all() {
  partitions_.clear();
  isolated_.clear();
  flush_blocked();
}

void Network::set_delay(const Node& a, const Node& b, Delay delay) { delays_[pair_of(a, b)] = delay; }

void Network::flush_blocked() {
  for (const LinkPtr& link : links()) {
    if (blocked(*link->ends[0].process, *link->ends[1].process)) continue;
    link->cut_off_since.reset();
    for (int side = 0; side < 2; ++side) {
      for (Packet& packet : std::exchange(link->ends[side].blocked, {})) transmit(link, side, std::move(packet));
    }
  }
}

void Network::watch_silence() {
  Schedule& schedule = cluster_.schedule();
  const Nanos now = schedule.now();
  for (const LinkPtr& link : links()) {
    if (link->cut_off_since || !blocked(*link->ends[0].process, *link->ends[1].process)) continue;
    link->cut_off_since = now;
    for (int side = 0; side < 2; ++side) {
      schedule.at(now + cluster_.policy.net.silence, link->ends[side].process->owner, [this, link, side, now] {
        if (link->cut_off_since == now) arrive_later(link, side, Nanos{}, "the peer is silent");
      });
    }
  }
}

}  // namespace holdfast::sim
