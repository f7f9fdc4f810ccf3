#include "sim/sim_processes.h"

#include <csignal>

#include "sim/sim_fork_server.h"

namespace holdfast::sim {

namespace {
Error gone() { return {Code::Unavailable, "the simulated process is gone"}; }
}  // namespace

void SimChild::signal(int number) {
  if (child_.spawner->alive) cluster_.processes().signal(child_, number);
}

void SimChild::signal_group(int number) {
  // Until it is reaped, dead or alive, it keeps the group's number from being anyone else's.
  if (child_.spawner->alive && !child_.reaped) cluster_.processes().signal_group(child_.group, number);
}

Result<std::pair<Nanos, char>> SimChild::usage() {
  if (child_.reaped) return Error(Code::NotFound, "usage of process " + std::to_string(child_.pid) + ": it is gone");
  Nanos cpu = child_.cpu;
  char state = 'S';
  if (!child_.alive) {
    state = 'Z';
  } else if ((child_.holds & kUnkillable) != 0) {
    state = 'D';
  } else if ((child_.holds & kStopped) != 0) {
    state = 'T';
  } else if (child_.spinning_since) {
    state = 'R';
    cpu += cluster_.now() - *child_.spinning_since;
  }
  return std::pair(cpu, state);
}

Result<std::unique_ptr<world::Process>> SimProcesses::spawn(const SpawnSpec& spec, ProcessEvents events) {
  ProcessTable& table = cluster_.processes();
  if (!table.enter(process_)) return gone();
  const std::string name = spec.argv.empty() ? "" : spec.argv[0];
  if (table.program(spec.argv) == nullptr)
    return Error(Code::NotFound, "spawn " + name + ": No such file or directory");
  if (table.random().chance(cluster_.policy.process.spawn_fails)) {
    return Error(Code::Unavailable, "spawn " + name + ": Resource temporarily unavailable");
  }
  ProcessRecord& child = table.add(*process_.node, &process_, spec);
  child.events = std::make_shared<ProcessEvents>(std::move(events));
  if (spec.ring != nullptr) child.ring = static_cast<SimSharedMemory*>(spec.ring)->pages();
  child.spec.ring = nullptr;  // the parent's, and maybe gone by the time the program looks
  table.start(child, table.random().draw(cluster_.policy.process.start));
  return std::unique_ptr<world::Process>(std::make_unique<SimChild>(cluster_, child));
}

Result<std::unique_ptr<world::ForkServer>> SimProcesses::spawn_fork_server(
    const SpawnSpec& spec, ProcessEvents events, std::function<void(Result<int> threads)> on_ready) {
  ProcessTable& table = cluster_.processes();
  if (!table.enter(process_)) return gone();
  if (!process_.subreaper) return Error(Code::Internal, "spawn a fork server: this process is no child subreaper");
  ProcessRecord& server = table.add(*process_.node, &process_, spec);
  server.events = std::make_shared<ProcessEvents>(std::move(events));
  return std::unique_ptr<world::ForkServer>(
      std::make_unique<SimForkServer>(cluster_, process_, server, std::move(on_ready)));
}

Result<std::unique_ptr<world::SharedMemory>> SimProcesses::make_shared_memory(std::size_t bytes) {
  if (!cluster_.processes().enter(process_)) return gone();
  return std::unique_ptr<world::SharedMemory>(std::make_unique<SimSharedMemory>(bytes));
}

std::vector<pid_t> SimProcesses::kill_all(Nanos /*patience*/) {
  if (!cluster_.processes().enter(process_)) return {};
  // The death of one may hand us its children: until nobody new turns up.
  std::vector<pid_t> unkillable;
  for (bool found = true; found;) {
    found = false;
    unkillable.clear();
    for (ProcessRecord* child : cluster_.processes().children(process_)) {
      if (!child->kill_pending) {
        found = true;
        cluster_.processes().signal_group(child->group, SIGKILL);
      }
      if (child->alive) unkillable.push_back(child->pid);
    }
  }
  return unkillable;
}

void SimProcesses::on_signal(int number, std::function<void()> fn) {
  if (process_.alive) process_.handlers[number] = std::make_shared<std::function<void()>>(std::move(fn));
}

}  // namespace holdfast::sim
