// Net on asio TCP sockets.
#pragma once

#include <memory>

#include "world/net.h"
#include "world/random.h"
#include "world/real_loop.h"

namespace holdfast::world {

class Strangers;

/// `loop` and `random` outlive this object and all connections and listeners made by it.
class RealNet final : public Net {
 public:
  RealNet(RealLoop& loop, Random& random);
  ~RealNet() override;
  Result<std::unique_ptr<Listener>> listen(const Address& at, const std::string& secret,
                                           std::function<void(std::unique_ptr<Connection>)> on_peer) override;
  void connect(const Address& to, const std::string& secret, Nanos patience,
               std::function<void(Result<std::unique_ptr<Connection>>)> done) override;

 private:
  RealLoop& loop_;
  Random& random_;
  std::shared_ptr<Strangers> strangers_;  // shared with connections, which may live as long as the loop
};

}  // namespace holdfast::world
