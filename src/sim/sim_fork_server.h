// A simulated fork server: greets after a while, forks on request, and can die or be stopped at any point in between.
#pragma once

#include <map>
#include <memory>

#include "sim/cluster.h"
#include "sim/sim_processes.h"

namespace holdfast::sim {

class SimForkServer final : public world::ForkServer {
 public:
  SimForkServer(Cluster& cluster, ProcessRecord& owner, ProcessRecord& server,
                std::function<void(Result<int> threads)> on_ready);
  ~SimForkServer() override;
  void fork(const SpawnSpec& spec, ProcessEvents events,
            std::function<void(Result<std::unique_ptr<world::Process>>)> done) override;
  world::Process& process() override { return process_; }

 private:
  using Done = std::function<void(Result<std::unique_ptr<world::Process>>)>;
  struct Request {
    SpawnSpec spec;
    Pages ring;
    ProcessEvents events;
    Done done;
    TimerId patience = world::kNoTimer;
  };
  /// What the events of requests need. Shared with them: they may come after this object is gone.
  struct Shared {
    std::function<void(Result<int>)> on_ready;
    std::map<std::uint64_t, Request> waiting;
    bool gone = false;
  };
  using SharedPtr = std::shared_ptr<Shared>;

  void greet();
  /// In the server: the child runs, and nobody knows yet.
  static void fork_child(Cluster& cluster, ProcessRecord& owner, ProcessRecord& server, const SharedPtr& shared,
                         std::uint64_t id);
  static void finish(Cluster& cluster, const SharedPtr& shared, std::uint64_t id,
                     Result<std::unique_ptr<world::Process>> result);
  static void answer(Cluster& cluster, ProcessRecord& owner, const SharedPtr& shared, std::uint64_t id,
                     ProcessRecord* child, const std::string& why);

  Cluster& cluster_;
  ProcessRecord& owner_;
  ProcessRecord& server_;
  SimChild process_;
  SharedPtr shared_;
  std::uint64_t last_id_ = 0;
};

}  // namespace holdfast::sim
