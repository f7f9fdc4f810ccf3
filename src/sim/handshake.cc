// How a connection comes about: knock, handshake on both sides, or refusal, or silence until the caller gives up.
#include <arpa/inet.h>

#include <algorithm>
#include <utility>

#include "sim/cluster.h"
#include "sim/network.h"
#include "sim/sim_net.h"

namespace holdfast::sim {

namespace {

constexpr std::uint16_t kFirstFreePort = 32768;
constexpr std::uint16_t kFreePorts = 28000;

bool numeric(const std::string& host) {
  unsigned char raw[16];
  return inet_pton(AF_INET, host.c_str(), raw) == 1 || inet_pton(AF_INET6, host.c_str(), raw) == 1;
}

bool any_host(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

Error refused(const Address& to) { return {Code::Unavailable, "connect to " + to.text() + ": Connection refused"}; }

}  // namespace

/// One call of connect, under way. Shared by its events.
struct Network::Attempt {
  ProcessRecord* process = nullptr;
  Owner owner = kNobody;
  Address to;
  std::string secret;
  ConnectDone done;
  TimerId patience = world::kNoTimer;
};

Result<ListeningPtr> Network::listen(ProcessRecord& process, const Address& at, const std::string& secret,
                                     std::function<void(std::unique_ptr<Connection>)> on_peer) {
  if (!numeric(at.host)) return Error(Code::BadInput, "listen on " + at.host + ": not a numeric address");
  std::erase_if(listening_, [](const ListeningPtr& old) { return !old->open; });
  const auto taken = [&](std::uint16_t port) {
    return std::any_of(listening_.begin(), listening_.end(), [&](const ListeningPtr& other) {
      return other->process->node == process.node && other->at.port == port &&
             (other->at.host == at.host || any_host(other->at.host) || any_host(at.host));
    });
  };
  Address got = at;
  while (got.port == 0 || (at.port == 0 && taken(got.port))) {
    got.port = static_cast<std::uint16_t>(kFirstFreePort + random_.below(kFreePorts));
  }
  if (taken(got.port)) {
    return Error(Code::Unavailable, "listen on " + at.text() + ": Address already in use");
  }
  listening_.push_back(std::make_shared<Listening>(
      Listening{.process = &process, .at = got, .secret = secret, .on_peer = std::move(on_peer), .open = true}));
  return listening_.back();
}

Node* Network::node_at(const ProcessRecord& from, const std::string& host) {
  if (host.rfind("127.", 0) == 0 || host == "::1") return from.node;
  for (const auto& [name, node] : cluster_.nodes()) {
    if (node->host() == host) return node.get();
  }
  return nullptr;
}

ListeningPtr Network::find_listening(const Node& node, const Address& to) {
  for (const ListeningPtr& listening : listening_) {
    if (listening->open && listening->process->node == &node && listening->at.port == to.port &&
        (any_host(listening->at.host) || listening->at.host == to.host)) {
      return listening;
    }
  }
  return nullptr;
}

void Network::connect(ProcessRecord& process, const Address& to, const std::string& secret, Nanos patience,
                      ConnectDone done) {
  auto attempt = std::make_shared<Attempt>(Attempt{.process = &process,
                                                   .owner = process.owner,
                                                   .to = to,
                                                   .secret = secret,
                                                   .done = std::move(done),
                                                   .patience = world::kNoTimer});
  Schedule& schedule = cluster_.schedule();
  if (!numeric(to.host)) {
    return answer(attempt, schedule.now(), Error(Code::BadInput, "connect to " + to.host + ": not a numeric address"));
  }
  attempt->patience = schedule.at(schedule.now() + patience, attempt->owner, [attempt] {
    const ConnectDone give_up = std::exchange(attempt->done, nullptr);
    if (give_up == nullptr) return;
    give_up(Error(Code::Unavailable, "connect to " + attempt->to.text() + ": timed out"));
  });
  const Node* node = node_at(process, to.host);
  if (node == nullptr) return;
  schedule.at(schedule.now() + delay(*process.node, *node), kNobody, [this, attempt, node] { knock(attempt, *node); });
}

void Network::answer(const std::shared_ptr<Attempt>& attempt, Nanos when, Error error) {
  cluster_.schedule().at(when, attempt->owner, [this, attempt, error = std::move(error)] {
    const ConnectDone done = std::exchange(attempt->done, nullptr);
    if (done == nullptr) return;
    cluster_.schedule().cancel(attempt->patience);
    done(error);
  });
}

void Network::knock(const std::shared_ptr<Attempt>& attempt, const Node& node) {
  if (!node.up() || attempt->done == nullptr) return;
  if (partitions_.contains(pair_of(*attempt->process->node, node)) || isolated_.contains(attempt->process)) return;
  const Nanos now = cluster_.schedule().now();
  const ListeningPtr listening = find_listening(node, attempt->to);
  if (listening == nullptr) {
    return answer(attempt, now + delay(node, *attempt->process->node), refused(attempt->to));
  }
  // Challenge and proof go to and fro; then both sides know.
  const Nanos proven = now + delay(node, *attempt->process->node) + delay(*attempt->process->node, node);
  cluster_.schedule().at(proven, listening->process->owner,
                         [this, attempt, listening] { shake_hands(attempt, listening); });
}

void Network::shake_hands(const std::shared_ptr<Attempt>& attempt, const ListeningPtr& listening) {
  ProcessRecord& client = *attempt->process;
  ProcessRecord& server = *listening->process;
  if (!client.alive || client.owner != attempt->owner || attempt->done == nullptr || blocked(client, server)) return;
  const Nanos answered = cluster_.schedule().now() + delay(*server.node, *client.node);
  if (!listening->open) return answer(attempt, answered, refused(attempt->to));
  if (listening->secret != attempt->secret) {
    return answer(attempt, answered,
                  Error(Code::Denied, "connect to " + attempt->to.text() + ": the peer does not know our secret"));
  }
  auto link = std::make_shared<Link>();
  link->ends[0].process = &client;
  link->ends[1].process = &server;
  link->ends[0].last_arrival = answered;
  links_.push_back(link);
  // Holds the client's side until it is asked for: a client that has given up by then drops it.
  auto connection = std::make_shared<std::unique_ptr<Connection>>(make_connection(cluster_, link, 0));
  cluster_.schedule().at(answered, client.owner, [this, attempt, connection] {
    const ConnectDone done = std::exchange(attempt->done, nullptr);
    if (done == nullptr) return;
    cluster_.schedule().cancel(attempt->patience);
    done(std::move(*connection));
  });
  listening->on_peer(make_connection(cluster_, link, 1));
}

}  // namespace holdfast::sim
