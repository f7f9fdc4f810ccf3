// The network as one simulated process sees it.
#pragma once

#include "sim/cluster.h"
#include "world/net.h"

namespace holdfast::sim {

class SimNet final : public world::Net {
 public:
  SimNet(Cluster& cluster, ProcessRecord& process) : cluster_(cluster), process_(process) {}
  Result<std::unique_ptr<world::Listener>> listen(const Address& at, const std::string& secret,
                                                  std::function<void(std::unique_ptr<Connection>)> on_peer) override;
  void connect(const Address& to, const std::string& secret, Nanos patience, ConnectDone done) override;

 private:
  Cluster& cluster_;
  ProcessRecord& process_;
};

/// One side of `link` as a Connection.
std::unique_ptr<Connection> make_connection(Cluster& cluster, LinkPtr link, int side);

}  // namespace holdfast::sim
