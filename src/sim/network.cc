// Messages under way are events of the process they go to: they wait while it is stopped and vanish when it dies.
#include "sim/network.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "sim/cluster.h"

namespace holdfast::sim {

namespace {
Packet end_packet(const std::string& why) { return {.message = {}, .number = 0, .end = true, .why = why}; }
}  // namespace

Network::Network(Cluster& cluster, const SimRandom& random) : cluster_(cluster), random_(random) {}

Network::NodePair Network::pair_of(const Node& a, const Node& b) { return std::minmax(a.number(), b.number()); }

bool Network::blocked(const ProcessRecord& a, const ProcessRecord& b) const {
  return partitions_.contains(pair_of(*a.node, *b.node)) || isolated_.contains(&a) || isolated_.contains(&b);
}

Nanos Network::delay(const Node& a, const Node& b) {
  const auto own = delays_.find(pair_of(a, b));
  if (own != delays_.end()) return random_.draw(own->second);
  return random_.draw(&a == &b ? cluster_.policy.net.same_node : cluster_.policy.net.between_nodes);
}

void Network::send(const LinkPtr& link, int from, BytesView message) {
  LinkEnd& to = link->ends[1 - from];
  if (to.bytes_under_way + message.size() > world::kSendQueueBytesMax) {
    arrive_later(link, from, Nanos{}, "it takes no data: queue full");
    abandon_direction(link, from);
    return;
  }
  if (cluster_.traced()) {
    const std::string what = describe ? describe(message) : std::to_string(message.size()) + " bytes";
    cluster_.trace(link->ends[from].process, "sends to " + std::to_string(to.process->pid) + ": " + what);
  }
  if (random_.chance(cluster_.policy.net.cut)) return break_link(link, "connection reset");
  to.bytes_under_way += message.size();
  transmit(link, 1 - from,
           {.message = Bytes(message.begin(), message.end()), .number = ++to.sent, .end = false, .why = {}});
}

void Network::transmit(const LinkPtr& link, int to, Packet packet) {
  LinkEnd& end = link->ends[to];
  if (blocked(*end.process, *link->ends[1 - to].process)) {
    end.blocked.push_back(std::move(packet));
    return;
  }
  const NetPolicy& policy = cluster_.policy.net;
  Nanos when = cluster_.schedule().now() + delay(*link->ends[1 - to].process->node, *end.process->node);
  if (!packet.end && random_.chance(policy.duplicate)) {
    schedule_arrival(link, to, packet, std::max(when, end.last_arrival) + random_.draw(policy.reorder_by));
  }
  if (!packet.end && random_.chance(policy.reorder)) {
    when = std::max(when, end.last_arrival) + random_.draw(policy.reorder_by);
  } else {
    when = std::max(when, end.last_arrival);
    end.last_arrival = when;
  }
  schedule_arrival(link, to, std::move(packet), when);
}

void Network::schedule_arrival(const LinkPtr& link, int to, Packet packet, Nanos when) {
  cluster_.schedule().at(when, link->ends[to].process->owner,
                         [this, link, to, packet = std::move(packet)] { arrive(link, to, packet); });
}

void Network::arrive(const LinkPtr& link, int to, const Packet& packet) {
  LinkEnd& end = link->ends[to];
  if (!end.open) return;
  // As with a socket that nobody reads, not even the end shows before there is a callback for what came first.
  if (end.unread.empty() && deliverable(end, packet)) return deliver(link, to, packet);
  end.unread.push_back(packet);
}

bool Network::deliverable(const LinkEnd& end, const Packet& packet) {
  return end.message_fn != nullptr && (!packet.end || end.close_fn != nullptr);
}

void Network::deliver(const LinkPtr& link, int to, const Packet& packet) {
  LinkEnd& end = link->ends[to];
  if (packet.end) return end_arrived(link, to, packet.why);
  end.arrived = std::max(end.arrived, packet.number);
  end.bytes_under_way -= std::min(end.bytes_under_way, packet.message.size());
  if (packet.number > end.lost_after) return;
  std::uint64_t fact = packet.number;
  for (std::size_t i = 0; i < std::min<std::size_t>(packet.message.size(), 64); ++i) {
    fact = fact * 131 + std::to_integer<std::uint64_t>(packet.message[i]);
  }
  cluster_.schedule().fold(fact);
  const auto kept_while_running = end.message_fn;
  (*kept_while_running)(packet.message);
}

void Network::end_arrived(const LinkPtr& link, int side, const std::string& why) {
  LinkEnd& end = link->ends[side];
  if (cluster_.traced()) cluster_.trace(end.process, "connection closed: " + why);
  end.open = false;
  const auto kept_while_running = std::move(end.close_fn);
  forget_callbacks(end);
  // The peer's side, where it does not know yet.
  if (link->ends[1 - side].open) transmit(link, 1 - side, end_packet("the peer hung up"));
  (*kept_while_running)(why);
}

void Network::arrive_later(const LinkPtr& link, int side, Nanos after, const std::string& why) {
  schedule_arrival(link, side, end_packet(why), cluster_.schedule().now() + after);
}

void Network::forget_callbacks(LinkEnd& end) {
  // Destroyed last: they may own their own connection.
  const auto message_fn = std::move(end.message_fn);
  const auto close_fn = std::move(end.close_fn);
  end.message_fn = nullptr;
  end.close_fn = nullptr;
  end.unread.clear();
}

void Network::callbacks_set(const LinkPtr& link, int side) {
  if (link->ends[side].unread.empty()) return;
  Schedule& schedule = cluster_.schedule();
  schedule.at(schedule.now(), link->ends[side].process->owner, [this, link, side] {
    LinkEnd& end = link->ends[side];
    while (end.open && !end.unread.empty() && deliverable(end, end.unread.front())) {
      const Packet packet = std::move(end.unread.front());
      end.unread.pop_front();
      deliver(link, side, packet);
    }
  });
}

void Network::close(const LinkPtr& link, int side) {
  LinkEnd& end = link->ends[side];
  if (!end.open) return;
  end.open = false;
  transmit(link, 1 - side, end_packet("the peer hung up"));
  forget_callbacks(end);
}

void Network::abandon_direction(const LinkPtr& link, int from) {
  LinkEnd& to = link->ends[1 - from];
  if (to.sent > to.arrived && random_.chance(0.5)) to.lost_after = to.arrived + random_.below(to.sent - to.arrived + 1);
}

void Network::abandon(const LinkPtr& link, int side) {
  LinkEnd& end = link->ends[side];
  if (!end.open) return;
  abandon_direction(link, side);
  close(link, side);
}

void Network::break_link(const LinkPtr& link, const std::string& why) {
  for (int side = 0; side < 2; ++side) {
    abandon_direction(link, side);
    arrive_later(link, side, delay(*link->ends[1 - side].process->node, *link->ends[side].process->node), why);
  }
}

void Network::process_gone(ProcessRecord& process) {
  for (const ListeningPtr& listening : listening_) {
    if (listening->process == &process) listening->open = false;
  }
  for (const LinkPtr& link : links()) {
    for (int side = 0; side < 2; ++side) {
      if (link->ends[side].process == &process) abandon(link, side);
    }
  }
}

void Network::process_vanished(ProcessRecord& process) {
  for (const ListeningPtr& listening : listening_) {
    if (listening->process == &process) listening->open = false;
  }
  for (const LinkPtr& link : links()) {
    for (int side = 0; side < 2; ++side) {
      LinkEnd& end = link->ends[side];
      if (end.process != &process || !end.open) continue;
      abandon_direction(link, side);
      end.open = false;
      forget_callbacks(end);
      arrive_later(link, 1 - side, cluster_.policy.net.silence, "the peer is silent");
    }
  }
}

std::vector<LinkPtr> Network::links() {
  std::vector<LinkPtr> found;
  std::erase_if(links_, [&found](const std::weak_ptr<Link>& weak) {
    LinkPtr link = weak.lock();
    const bool over = link == nullptr || (!link->ends[0].open && !link->ends[1].open);
    if (!over) found.push_back(std::move(link));
    return over;
  });
  return found;
}

void Network::shut_down() {
  for (const LinkPtr& link : links()) {
    for (LinkEnd& end : link->ends) {
      end.open = false;
      forget_callbacks(end);
    }
  }
  links_.clear();
  listening_.clear();
}

}  // namespace holdfast::sim
