#include "sim/sim_net.h"

#include "base/check.h"

namespace holdfast::sim {

namespace {

class SimConnection final : public Connection {
 public:
  SimConnection(Cluster& cluster, LinkPtr link, int side) : cluster_(cluster), link_(std::move(link)), side_(side) {}
  ~SimConnection() override { SimConnection::close(); }

  void send(BytesView message) override {
    CHECK(message.size() <= world::kMessageBytesMax);
    if (!end().open || !cluster_.processes().enter(*end().process)) return;
    cluster_.network().send(link_, side_, message);
  }
  void on_message(std::function<void(BytesView)> fn) override {
    if (!end().open) return;
    end().message_fn = std::make_shared<std::function<void(BytesView)>>(std::move(fn));
    cluster_.network().callbacks_set(link_, side_);
  }
  void on_close(std::function<void(const std::string&)> fn) override {
    if (!end().open) return;
    end().close_fn = std::make_shared<std::function<void(const std::string&)>>(std::move(fn));
    cluster_.network().callbacks_set(link_, side_);
  }
  void close() override {
    if (end().open && end().process->alive) cluster_.network().close(link_, side_);
  }

 private:
  LinkEnd& end() { return link_->ends[side_]; }

  Cluster& cluster_;
  LinkPtr link_;
  int side_;
};

class SimListener final : public world::Listener {
 public:
  explicit SimListener(ListeningPtr listening) : listening_(std::move(listening)) {}
  ~SimListener() override { listening_->open = false; }
  Address address() const override { return listening_->at; }

 private:
  ListeningPtr listening_;
};

}  // namespace

std::unique_ptr<Connection> make_connection(Cluster& cluster, LinkPtr link, int side) {
  return std::make_unique<SimConnection>(cluster, std::move(link), side);
}

Result<std::unique_ptr<world::Listener>> SimNet::listen(const Address& at, const std::string& secret,
                                                        std::function<void(std::unique_ptr<Connection>)> on_peer) {
  if (!cluster_.processes().enter(process_)) return Error(Code::Unavailable, "the simulated process is gone");
  auto listening = cluster_.network().listen(process_, at, secret, std::move(on_peer));
  if (!listening) return std::move(listening).error();
  return std::unique_ptr<world::Listener>(std::make_unique<SimListener>(*std::move(listening)));
}

void SimNet::connect(const Address& to, const std::string& secret, Nanos patience, ConnectDone done) {
  if (!cluster_.processes().enter(process_)) return;
  cluster_.network().connect(process_, to, secret, patience, std::move(done));
}

}  // namespace holdfast::sim
