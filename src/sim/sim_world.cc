#include "sim/sim_world.h"

#include <csignal>

#include "base/check.h"
#include "sim/sim_disk.h"
#include "sim/sim_loop.h"
#include "sim/sim_net.h"
#include "sim/sim_processes.h"

namespace holdfast::sim {

namespace {

/// Streams of processes lie beyond those of the cluster's own parts.
constexpr std::uint64_t kFirstProcessStream = 1'000'000;

class SimClock final : public world::Clock {
 public:
  SimClock(Cluster& cluster, ProcessRecord& process) : cluster_(cluster), process_(process) {}
  Nanos steady() override { return cluster_.now(); }
  Nanos wall() override { return process_.node->wall(cluster_.now()); }

 private:
  Cluster& cluster_;
  ProcessRecord& process_;
};

}  // namespace

struct SimWorld::Parts {
  Parts(Cluster& cluster, ProcessRecord& process)
      : clock(cluster, process),
        random(cluster.random_for(kFirstProcessStream + process.owner)),
        loop(cluster, process),
        disk(cluster, process),
        net(cluster, process),
        processes(cluster, process) {}

  SimClock clock;
  SimRandom random;
  SimLoop loop;
  SimDisk disk;
  SimNet net;
  SimProcesses processes;
};

SimWorld::SimWorld(std::uint64_t seed)
    : own_cluster_(std::make_unique<Cluster>(seed)),
      cluster_(*own_cluster_),
      process_(cluster_.adopt_main(cluster_.node("machine"))),
      parts_(std::make_unique<Parts>(cluster_, process_)) {
  process_.world = this;
}

SimWorld::SimWorld(Cluster& cluster, ProcessRecord& process)
    : cluster_(cluster), process_(process), parts_(std::make_unique<Parts>(cluster, process)) {}

SimWorld::~SimWorld() {
  if (own_cluster_ != nullptr) own_cluster_->shut_down();
}

world::Clock& SimWorld::clock() { return parts_->clock; }
world::Random& SimWorld::random() { return parts_->random; }
world::Loop& SimWorld::loop() { return parts_->loop; }
world::Disk& SimWorld::disk() { return parts_->disk; }
world::Net& SimWorld::net() { return parts_->net; }
world::Processes& SimWorld::processes() { return parts_->processes; }

pid_t SimWorld::pid() const { return process_.pid; }
const SpawnSpec& SimWorld::spec() const { return process_.spec; }

std::optional<std::string> SimWorld::env(const std::string& name) const {
  for (const ProcessRecord* process = &process_; process != nullptr; process = process->spawner) {
    const auto found = process->spec.env.find(name);
    if (found != process->spec.env.end()) return found->second;
  }
  return std::nullopt;
}

std::span<std::byte> SimWorld::ring() {
  return process_.ring == nullptr ? std::span<std::byte>() : std::span<std::byte>(*process_.ring);
}

void SimWorld::print(world::Stream stream, const std::string& text) {
  if (!process_.alive) return;
  const world::OutputSpec& output = stream == world::Stream::Out ? process_.spec.out : process_.spec.err;
  if (output.file) {
    DiskImage& image = node().disk();
    // Not counted as a disk call: the kernel writes it for whoever holds the descriptor.
    if (auto file = image.append_to(*output.file)) {
      (void)image.write(**file, (*file)->bytes.size(),
                        as_bytes(text));  // a full disk loses output, as it does for real
      image.close(*file);
    }
  }
  if (!output.to_callback) return;
  cluster_.processes().notify(process_, [stream, text](ProcessEvents& events) {
    if (events.on_output) events.on_output(stream, as_bytes(text));
  });
}

void SimWorld::become_subreaper() { process_.subreaper = true; }
void SimWorld::exit(int code) { cluster_.processes().end(process_, {.code = code, .signal = 0}); }

pid_t SimWorld::fork_helper(const std::vector<std::string>& argv) {
  ProcessTable& table = cluster_.processes();
  CHECK(!argv.empty() && table.program(argv) != nullptr);
  if (!table.enter(process_)) return -1;
  SpawnSpec spec;
  spec.argv = argv;
  spec.die_with_us = false;
  ProcessRecord& helper = table.add(node(), &process_, std::move(spec), process_.group);
  table.start(helper, table.random().draw(cluster_.policy.process.fork));
  return helper.pid;
}

void SimWorld::spin(bool on) {
  if (on == process_.spinning_since.has_value()) return;
  if (on) {
    process_.spinning_since = cluster_.now();
  } else {
    process_.cpu += cluster_.now() - *process_.spinning_since;
    process_.spinning_since.reset();
  }
}

bool SimWorld::alive() const { return process_.alive; }
ExitStatus SimWorld::exit_status() const { return process_.status; }
void SimWorld::signal(int number) { cluster_.processes().signal(process_, number); }
void SimWorld::freeze() { cluster_.processes().hold(process_, kFrozen); }
void SimWorld::thaw() { cluster_.processes().release(process_, kFrozen); }
void SimWorld::make_unkillable() { cluster_.processes().hold(process_, kUnkillable); }
void SimWorld::release() { cluster_.processes().release(process_, kUnkillable); }
void SimWorld::isolate() { cluster_.network().isolate(process_); }
void SimWorld::rejoin() { cluster_.network().rejoin(process_); }
void SimWorld::kill_after(std::uint64_t calls) { process_.kill_at = process_.calls + calls; }
std::uint64_t SimWorld::calls() const { return process_.calls; }

Node& SimWorld::node() { return *process_.node; }
void SimWorld::restart() { node().restart(); }

void SimWorld::respawn() {
  CHECK(process_.spec.argv.empty());
  cluster_.processes().end(process_, {.code = 0, .signal = SIGKILL});
  cluster_.processes().revive(process_);
}

void SimWorld::reset() {
  // In place, because programs hold references to the parts.
  parts_->random = cluster_.random_for(kFirstProcessStream + process_.owner);
  parts_->loop.reset();
}

}  // namespace holdfast::sim
