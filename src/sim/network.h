// The simulated network: listeners, links, messages under way, partitions. SimNet (sim_net.h) is how a process sees it.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/policy.h"
#include "sim/schedule.h"
#include "world/net.h"

namespace holdfast::sim {

class Cluster;
class Node;
struct ProcessRecord;
using world::Address;
using world::Connection;

/// A message under way, or the end of the connection.
struct Packet {
  Bytes message;
  std::uint64_t number = 0;
  bool end = false;
  std::string why;
};

/// One side of a link. Callbacks are shared with the event that runs them: they may destroy their connection.
struct LinkEnd {
  ProcessRecord* process = nullptr;
  bool open = true;
  std::shared_ptr<std::function<void(BytesView)>> message_fn;
  std::shared_ptr<std::function<void(const std::string&)>> close_fn;
  std::deque<Packet> unread;  ///< arrived before there was a callback for it
  // Of the direction towards this end:
  std::deque<Packet> blocked;  ///< sent during a partition
  Nanos last_arrival{};
  std::uint64_t sent = 0;
  std::uint64_t arrived = 0;
  std::uint64_t lost_after = ~std::uint64_t{0};  ///< the sender broke off: later messages never left it
  std::size_t bytes_under_way = 0;
};

struct Link {
  LinkEnd ends[2];
  std::optional<Nanos> cut_off_since;
};
/// Shared by both connections and the events of messages under way.
using LinkPtr = std::shared_ptr<Link>;

struct Listening {
  ProcessRecord* process = nullptr;
  Address at;
  std::string secret;
  std::function<void(std::unique_ptr<Connection>)> on_peer;
  bool open = true;
};
/// Shared by the Listener and by handshakes under way.
using ListeningPtr = std::shared_ptr<Listening>;

using ConnectDone = std::function<void(Result<std::unique_ptr<Connection>>)>;

class Network {
 public:
  Network(Cluster& cluster, const SimRandom& random);

  Result<ListeningPtr> listen(ProcessRecord& process, const Address& at, const std::string& secret,
                              std::function<void(std::unique_ptr<Connection>)> on_peer);
  void connect(ProcessRecord& process, const Address& to, const std::string& secret, Nanos patience, ConnectDone done);
  void send(const LinkPtr& link, int from, BytesView message);
  /// What was sent still arrives.
  void close(const LinkPtr& link, int side);
  /// The process died: its last messages may not have left it.
  void abandon(const LinkPtr& link, int side);
  /// Runs callbacks for what arrived before they were set.
  void callbacks_set(const LinkPtr& link, int side);
  /// Tells of messages in traces.
  std::function<std::string(BytesView)> describe;

  /// No message passes between the two until `heal`; what was sent waits. Connections break after NetPolicy::silence.
  void partition(const Node& a, const Node& b);
  void heal(const Node& a, const Node& b);
  /// The same between one process and all others.
  void isolate(const ProcessRecord& process);
  void rejoin(const ProcessRecord& process);
  void heal_all();
  /// One-way delay between two machines, instead of NetPolicy's.
  void set_delay(const Node& a, const Node& b, Delay delay);

  void process_gone(ProcessRecord& process);
  void process_vanished(ProcessRecord& process);
  void shut_down();

 private:
  struct Attempt;
  using NodePair = std::pair<std::uint32_t, std::uint32_t>;
  static NodePair pair_of(const Node& a, const Node& b);

  bool blocked(const ProcessRecord& a, const ProcessRecord& b) const;
  Nanos delay(const Node& a, const Node& b);
  void transmit(const LinkPtr& link, int to, Packet packet);
  void schedule_arrival(const LinkPtr& link, int to, Packet packet, Nanos when);
  void arrive(const LinkPtr& link, int to, const Packet& packet);
  static bool deliverable(const LinkEnd& end, const Packet& packet);
  void deliver(const LinkPtr& link, int to, const Packet& packet);
  void end_arrived(const LinkPtr& link, int side, const std::string& why);
  /// This side finds the connection ended.
  void arrive_later(const LinkPtr& link, int side, Nanos after, const std::string& why);
  static void forget_callbacks(LinkEnd& end);
  void abandon_direction(const LinkPtr& link, int from);
  void break_link(const LinkPtr& link, const std::string& why);
  void flush_blocked();
  void watch_silence();
  std::vector<LinkPtr> links();

  Node* node_at(const ProcessRecord& from, const std::string& host);
  ListeningPtr find_listening(const Node& node, const Address& to);
  void knock(const std::shared_ptr<Attempt>& attempt, const Node& node);
  void shake_hands(const std::shared_ptr<Attempt>& attempt, const ListeningPtr& listening);
  void answer(const std::shared_ptr<Attempt>& attempt, Nanos when, Error error);

  Cluster& cluster_;  ///< owns this
  SimRandom random_;
  std::vector<ListeningPtr> listening_;
  std::vector<std::weak_ptr<Link>> links_;
  std::set<NodePair> partitions_;
  std::set<const ProcessRecord*> isolated_;
  std::map<NodePair, Delay> delays_;
};

}  // namespace holdfast::sim
