// Time passes here: one event after the other, the dead buried in between.
#include "sim/cluster.h"

#include <cstdio>
#include <cstdlib>

#include "base/check.h"
#include "sim/sim_world.h"

namespace holdfast::sim {

namespace {
// Streams of chance.
constexpr std::uint64_t kNetwork = 1;
constexpr std::uint64_t kProcesses = 2;
constexpr std::uint64_t kDisks = 1000;
}  // namespace

Cluster::Cluster(std::uint64_t seed)
    : seed_(seed), network_(*this, random_for(kNetwork)), processes_(*this, random_for(kProcesses)) {
  const char* wanted = std::getenv("HOLDFAST_SIM_TRACE");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  if (wanted != nullptr && *wanted != '\0' && *wanted != '0') {
    trace_ = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  }
}

Cluster::~Cluster() { shut_down(); }

void Cluster::shut_down() {
  for (ProcessRecord* process : processes_.alive()) processes_.mark_dead(*process, {});
  network_.shut_down();
  processes_.bury();
  schedule_.drop_all();
}

Node& Cluster::node(const std::string& name) {
  auto& place = nodes_[name];
  if (place == nullptr) {
    const auto number = static_cast<std::uint32_t>(nodes_.size() - 1);
    place = std::make_unique<Node>(*this, name, number, random_for(kDisks + number));
  }
  return *place;
}

void Cluster::add_program(const std::string& name, ActorFactory factory) {
  processes_.add_program(name, std::move(factory));
}

SimWorld& Cluster::spawn(Node& node, SpawnSpec spec) {
  CHECK(node.up());
  ProcessRecord& process = processes_.add(node, nullptr, std::move(spec));
  processes_.start(process, processes_.random().draw(policy.process.start));
  return *process.world;
}

SimWorld& Cluster::main(Node& node) {
  if (const auto known = mains_.find(&node); known != mains_.end()) return *known->second->world;
  CHECK(node.up());
  ProcessRecord& process = processes_.add(node, nullptr, {});
  process.own_world = std::make_unique<SimWorld>(*this, process);
  process.world = process.own_world.get();
  mains_[&node] = &process;
  return *process.world;
}

ProcessRecord& Cluster::adopt_main(Node& node) {
  ProcessRecord& process = processes_.add(node, nullptr, {});
  mains_[&node] = &process;
  return process;
}

void Cluster::revive_main(Node& node) {
  const auto known = mains_.find(&node);
  if (known != mains_.end()) processes_.revive(*known->second);
}

SimWorld& Cluster::world_of(pid_t pid) {
  ProcessRecord* process = processes_.find(pid);
  CHECK(process != nullptr && process->world != nullptr);
  return *process->world;
}

std::vector<pid_t> Cluster::alive() {
  std::vector<pid_t> pids;
  for (const ProcessRecord* process : processes_.alive()) pids.push_back(process->pid);
  return pids;
}

bool Cluster::run_next(Nanos limit) {
  CHECK(!in_event_);
  processes_.bury();
  in_event_ = true;
  const bool ran = schedule_.run_next(limit);
  in_event_ = false;
  processes_.bury();
  return ran;
}

void Cluster::run_for(Nanos time) {
  const Nanos limit = now() + time;
  while (run_next(limit)) {
  }
}

bool Cluster::run_until(const std::function<bool()>& reached, Nanos patience) {
  const Nanos limit = now() + patience;
  while (!reached()) {
    if (!run_next(limit)) return reached();
  }
  return true;
}

void Cluster::run_until_idle(std::uint64_t events_max) {
  const std::uint64_t limit = events_run() + events_max;
  while (!schedule_.idle()) {
    CHECK(events_run() < limit);
    run_next(schedule_.next_time());
  }
}

void Cluster::after(Nanos delay, std::function<void()> fn) { schedule_.at(now() + delay, kNobody, std::move(fn)); }

void Cluster::trace(const ProcessRecord* process, const std::string& line) {
  if (!trace_) return;
  char time[32];
  std::snprintf(time, sizeof time, "%13.6f ", std::chrono::duration<double>(now()).count());
  trace_(time + (process != nullptr ? process->node->name() + "/" + std::to_string(process->pid) + ": " : "") + line);
}

}  // namespace holdfast::sim
