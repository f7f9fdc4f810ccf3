// Net on asio TCP sockets.
#pragma once

#include <memory>

#include "world/net.h"
#include "world/random.h"
#include "world/real_loop.h"

namespace holdfast::world {

class Strangers;

struct NetPolicy {
  Nanos handshake_patience = std::chrono::seconds(5);  ///< for a peer that connects to a listener of ours
  std::size_t handshakes_max = 256;  ///< at once; peers that connect and say nothing must not use up descriptors
};

/// `loop` and `random` outlive this object and all connections and listeners made by it.
class RealNet final : public Net {
 public:
  RealNet(RealLoop& loop, Random& random, const NetPolicy& policy = {});
  ~RealNet() override;
  Result<std::unique_ptr<Listener>> listen(const Address& at, const std::string& secret,
                                           std::function<void(std::unique_ptr<Connection>)> on_peer) override;
  void connect(const Address& to, const std::string& secret, Nanos patience,
               std::function<void(Result<std::unique_ptr<Connection>>)> done) override;

 private:
  RealLoop& loop_;
  Random& random_;
  NetPolicy policy_;
  std::shared_ptr<Strangers> strangers_;  // shared with connections, which may live as long as the loop
};

}  // namespace holdfast::world
