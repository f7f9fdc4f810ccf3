#include "sim/sim_fork_server.h"

#include <csignal>
#include <utility>

namespace holdfast::sim {

namespace {
constexpr Nanos kPatience = std::chrono::seconds(10);
}

SimForkServer::SimForkServer(Cluster& cluster, ProcessRecord& owner, ProcessRecord& server,
                             std::function<void(Result<int> threads)> on_ready)
    : cluster_(cluster),
      owner_(owner),
      server_(server),
      process_(cluster, server),
      shared_(std::make_shared<Shared>()) {
  shared_->on_ready = std::move(on_ready);
  greet();
  server_.on_end.push_back([&cluster, &owner, shared = shared_] {
    const Nanos heard = cluster.now() + cluster.processes().random().draw(cluster.policy.process.notice);
    cluster.schedule().at(heard, owner.owner, [&cluster, shared] {
      if (shared->gone) return;
      if (auto ready = std::exchange(shared->on_ready, nullptr)) {
        ready(Error(Code::Unavailable, "the fork server died before it was ready"));
      }
      std::vector<std::uint64_t> ids;
      for (const auto& [id, request] : shared->waiting) ids.push_back(id);
      for (const std::uint64_t id : ids) finish(cluster, shared, id, Error(Code::Unavailable, "the fork server died"));
    });
  });
}

SimForkServer::~SimForkServer() {
  shared_->gone = true;
  // The server reads that nobody is there any more.
  cluster_.schedule().at(cluster_.now(), server_.owner, [&cluster = cluster_, &server = server_] {
    cluster.processes().end(server, {.code = 0, .signal = 0});
  });
  // Destroyed after the map is empty: the callbacks may own things of the world.
  const auto waiting = std::exchange(shared_->waiting, {});
}

void SimForkServer::greet() {
  SimRandom& random = cluster_.processes().random();
  const Nanos ready = cluster_.now() + random.draw(cluster_.policy.process.fork_server_start);
  const Nanos heard = random.draw(cluster_.policy.process.notice);
  const bool fails = random.chance(cluster_.policy.process.fork_server_fails);
  cluster_.schedule().at(
      ready, server_.owner, [this_cluster = &cluster_, owner = &owner_, shared = shared_, heard, fails] {
        this_cluster->schedule().at(this_cluster->now() + heard, owner->owner, [this_cluster, shared, fails] {
          auto on_ready = std::exchange(shared->on_ready, nullptr);
          if (shared->gone || on_ready == nullptr) return;
          if (fails) return on_ready(Error(Code::BadInput, "the fork server can't serve: a module started threads"));
          on_ready(this_cluster->policy.process.fork_server_threads);
        });
      });
}

void SimForkServer::fork(const SpawnSpec& spec, ProcessEvents events, Done done) {
  if (!cluster_.processes().enter(owner_)) return;
  const std::uint64_t id = ++last_id_;
  Schedule& schedule = cluster_.schedule();
  Request request{.spec = spec, .ring = {}, .events = std::move(events), .done = std::move(done)};
  if (spec.ring != nullptr) request.ring = static_cast<SimSharedMemory*>(spec.ring)->pages();
  request.spec.ring = nullptr;
  request.patience = schedule.at(schedule.now() + kPatience, owner_.owner, [&cluster = cluster_, shared = shared_, id] {
    finish(cluster, shared, id, Error(Code::Unavailable, "the fork server did not answer"));
  });
  shared_->waiting.emplace(id, std::move(request));
  if (!server_.alive) {
    schedule.at(schedule.now(), owner_.owner, [&cluster = cluster_, shared = shared_, id] {
      finish(cluster, shared, id, Error(Code::Unavailable, "the fork server is dead"));
    });
    return;
  }
  const Nanos forked = schedule.now() + cluster_.processes().random().draw(cluster_.policy.process.fork);
  schedule.at(forked, server_.owner, [&cluster = cluster_, &owner = owner_, &server = server_, shared = shared_, id] {
    fork_child(cluster, owner, server, shared, id);
  });
}

void SimForkServer::fork_child(Cluster& cluster, ProcessRecord& owner, ProcessRecord& server, const SharedPtr& shared,
                               std::uint64_t id) {
  const auto request = shared->waiting.find(id);
  // The server's socket ends with its owner, and so does the server.
  if (!owner.alive) return cluster.processes().end(server, {.code = 0, .signal = 0});
  if (request == shared->waiting.end()) return;
  ProcessTable& table = cluster.processes();
  const SpawnSpec& spec = request->second.spec;
  ProcessRecord* child = nullptr;
  std::string why;
  if (table.random().chance(cluster.policy.process.fork_fails)) {
    why = "fork: Resource temporarily unavailable";
  } else if (table.program(spec.argv) == nullptr) {
    why = "no such script";
  } else {
    child = &table.add(*owner.node, &owner, spec);
    child->ring = request->second.ring;
    child->announced = false;
    child->origin = &server;
    table.start(*child, Nanos{});
  }
  const Nanos sent = cluster.now() + table.random().draw(cluster.policy.process.fork_answer);
  cluster.schedule().at(sent, server.owner,
                        [&cluster, &owner, shared, id, child, why] { answer(cluster, owner, shared, id, child, why); });
}

void SimForkServer::answer(Cluster& cluster, ProcessRecord& owner, const SharedPtr& shared, std::uint64_t id,
                           ProcessRecord* child, const std::string& why) {
  const Nanos heard = cluster.now() + cluster.processes().random().draw(cluster.policy.process.notice);
  cluster.schedule().at(heard, owner.owner, [&cluster, shared, id, child, why] {
    const auto request = shared->waiting.find(id);
    if (request == shared->waiting.end()) {
      if (child != nullptr) cluster.processes().signal_group(child->group, SIGKILL);  // nobody waits for it any more
      return;
    }
    if (child == nullptr) return finish(cluster, shared, id, Error(Code::Unavailable, why));
    cluster.processes().announce(*child, std::move(request->second.events));
    finish(cluster, shared, id, std::unique_ptr<world::Process>(std::make_unique<SimChild>(cluster, *child)));
  });
}

void SimForkServer::finish(Cluster& cluster, const SharedPtr& shared, std::uint64_t id,
                           Result<std::unique_ptr<world::Process>> result) {
  auto request = shared->waiting.extract(id);
  if (request.empty() || shared->gone) return;
  cluster.schedule().cancel(request.mapped().patience);
  request.mapped().done(std::move(result));
}

}  // namespace holdfast::sim
