// A process that ends is only marked dead: its code may be on the stack. What it left is destroyed between events.
#include "sim/process_table.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/check.h"
#include "sim/cluster.h"
#include "sim/sim_world.h"

namespace holdfast::sim {

namespace {

constexpr pid_t kFirstPid = 1001;

bool ignored_by_default(int number) {
  return number == SIGCHLD || number == SIGURG || number == SIGWINCH || number == SIGCONT;
}

bool stops(int number) { return number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU; }

ProcessRecord* nearest_subreaper(ProcessRecord* process) {
  while (process != nullptr && !(process->alive && process->subreaper)) process = process->parent;
  return process;
}

}  // namespace

ProcessTable::ProcessTable(Cluster& cluster, const SimRandom& random) : cluster_(cluster), random_(random) {}

ProcessTable::~ProcessTable() = default;

void ProcessTable::add_program(const std::string& name, ActorFactory factory) { programs_[name] = std::move(factory); }

const ActorFactory* ProcessTable::program(const std::vector<std::string>& argv) const {
  auto found = programs_.end();
  for (std::size_t i = 0; i + 1 < argv.size() && found == programs_.end(); ++i) {
    if (argv[i] == "-m") found = programs_.find("-m " + argv[i + 1]);
  }
  if (found == programs_.end() && !argv.empty()) found = programs_.find(argv[0]);
  return found == programs_.end() ? nullptr : &found->second;
}

ProcessRecord& ProcessTable::add(Node& node, ProcessRecord* parent, SpawnSpec spec, pid_t group) {
  auto process = std::make_unique<ProcessRecord>();
  process->pid = kFirstPid + static_cast<pid_t>(processes_.size());
  process->group = group != 0 ? group : process->pid;
  process->node = &node;
  process->owner = cluster_.schedule().add_owner();
  process->parent = parent;
  process->spawner = parent;
  process->origin = parent;
  process->spec = std::move(spec);
  processes_.push_back(std::move(process));
  return *processes_.back();
}

void ProcessTable::start(ProcessRecord& process, Nanos delay) {
  process.own_world = std::make_unique<SimWorld>(cluster_, process);
  process.world = process.own_world.get();
  const ActorFactory* factory = program(process.spec.argv);
  CHECK(factory != nullptr);
  Schedule& schedule = cluster_.schedule();
  schedule.at(schedule.now() + delay, process.owner, [this, &process, factory] {
    cluster_.trace(&process, "starts " + process.spec.argv[0]);
    auto actor = (*factory)(*process.world, process.spec);
    process.actor = std::move(actor);
  });
}

void ProcessTable::revive(ProcessRecord& process) {
  bury();
  process.owner = cluster_.schedule().add_owner();
  process.alive = true;
  process.holds = 0;
  process.kill_pending = false;
  process.status = {};
  process.kill_at = ~std::uint64_t{0};
  process.spinning_since.reset();
  process.world->reset();
}

ProcessRecord* ProcessTable::find(pid_t pid) {
  const auto place = static_cast<std::size_t>(pid - kFirstPid);
  return pid >= kFirstPid && place < processes_.size() ? processes_[place].get() : nullptr;
}

std::vector<ProcessRecord*> ProcessTable::alive() {
  std::vector<ProcessRecord*> found;
  for (const auto& process : processes_) {
    if (process->alive) found.push_back(process.get());
  }
  return found;
}

std::vector<ProcessRecord*> ProcessTable::children(const ProcessRecord& process) {
  std::vector<ProcessRecord*> found;
  for (const auto& other : processes_) {
    if (other->alive && other->parent == &process) found.push_back(other.get());
  }
  return found;
}

bool ProcessTable::enter(ProcessRecord& process) {
  if (!process.alive) return false;
  if (process.calls >= process.kill_at) {
    end(process, {.code = 0, .signal = SIGKILL});
    return false;
  }
  ++process.calls;
  return true;
}

void ProcessTable::signal(ProcessRecord& process, int number) {
  if (!process.alive || number == 0) return;
  cluster_.trace(&process, "signal " + std::to_string(number));
  if (number == SIGKILL) return kill(process);
  if (stops(number)) {
    if ((process.holds & kStopped) != 0) return;
    hold(process, kStopped);
    notify(process, [](ProcessEvents& events) {
      if (events.on_stopped) events.on_stopped();
    });
    return;
  }
  if (number == SIGCONT && (process.holds & kStopped) != 0) {
    release(process, kStopped);
    notify(process, [](ProcessEvents& events) {
      if (events.on_continued) events.on_continued();
    });
  }
  if (process.handlers.contains(number)) return run_handler(process, number);
  if (ignored_by_default(number)) return;
  if (process.holds != 0) {
    process.pending.push_back(number);
  } else {
    end(process, {.code = 0, .signal = number});
  }
}

void ProcessTable::run_handler(ProcessRecord& process, int number) {
  Schedule& schedule = cluster_.schedule();
  schedule.at(schedule.now(), process.owner, [&process, number] {
    const auto handler = process.handlers.find(number);
    if (handler == process.handlers.end()) return;
    const auto kept_while_running = handler->second;
    (*kept_while_running)();
  });
}

void ProcessTable::signal_group(pid_t group, int number) {
  // By index: a signal may start nothing, but what it ends may grow the table one day.
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (processes_[i]->group == group) signal(*processes_[i], number);
  }
}

void ProcessTable::kill(ProcessRecord& process) {
  if ((process.holds & kUnkillable) == 0 && random_.chance(cluster_.policy.process.unkillable)) {
    hold(process, kUnkillable);
    const Delay& lasts = cluster_.policy.process.unkillable_for;
    if (lasts.max > Nanos{}) {
      Schedule& schedule = cluster_.schedule();
      schedule.at(schedule.now() + random_.draw(lasts), kNobody, [this, &process] { release(process, kUnkillable); });
    }
  }
  if ((process.holds & kUnkillable) != 0) {
    process.kill_pending = true;
    return;
  }
  end(process, {.code = 0, .signal = SIGKILL});
}

void ProcessTable::hold(ProcessRecord& process, Hold why) {
  if (!process.alive) return;
  process.holds |= why;
  cluster_.schedule().hold(process.owner);
}

void ProcessTable::release(ProcessRecord& process, Hold why) {
  if (!process.alive) return;
  process.holds &= ~why;
  if (process.kill_pending && (process.holds & kUnkillable) == 0) {
    return end(process, {.code = 0, .signal = SIGKILL});
  }
  if (process.holds != 0) return;
  cluster_.schedule().release(process.owner);
  for (const int number : std::exchange(process.pending, {})) signal(process, number);
}

void ProcessTable::mark_dead(ProcessRecord& process, ExitStatus status) {
  process.alive = false;
  process.status = status;
  cluster_.schedule().silence(process.owner);
  dead_.push_back(&process);
}

void ProcessTable::end(ProcessRecord& process, ExitStatus status) {
  if (!process.alive) return;
  cluster_.trace(&process, "ends, code " + std::to_string(status.code) + ", signal " + std::to_string(status.signal));
  cluster_.schedule().fold(static_cast<std::uint64_t>(process.pid) * 256 + static_cast<std::uint64_t>(status.signal));
  mark_dead(process, status);
  cluster_.network().process_gone(process);
  notify_end(process);
  for (const auto& tell : std::exchange(process.on_end, {})) tell();
  leave_children(process);
}

void ProcessTable::leave_children(ProcessRecord& process) {
  ProcessRecord* heir = nearest_subreaper(process.parent);
  for (ProcessRecord* child : children(process)) {
    child->parent = heir;
    if (child->spec.die_with_us) signal(*child, SIGKILL);
  }
}

void ProcessTable::vanish(Node& node) {
  for (ProcessRecord* process : alive()) {
    if (process->node != &node) continue;
    mark_dead(*process, {.code = 0, .signal = SIGKILL});
    cluster_.network().process_vanished(*process);
    process->on_end.clear();
  }
}

void ProcessTable::notify(ProcessRecord& process, std::function<void(ProcessEvents&)> tell) {
  after_notices(process, [&process, tell = std::move(tell)] {
    const auto kept_while_running = process.events;
    if (kept_while_running != nullptr) tell(*kept_while_running);
  });
}

void ProcessTable::notify_end(ProcessRecord& process) {
  after_notices(process, [this, &process] {
    process.noticed = true;
    const auto last = std::exchange(process.events, nullptr);
    if (last != nullptr && last->on_exit) last->on_exit(process.status);
    reap(process);
  });
}

void ProcessTable::after_notices(ProcessRecord& process, std::function<void()> fn) {
  if (process.spawner == nullptr) return;
  if (!process.announced) return process.unannounced.push_back(std::move(fn));
  Schedule& schedule = cluster_.schedule();
  const Nanos when = schedule.now() + random_.draw(cluster_.policy.process.notice);
  process.last_notice = std::max(process.last_notice, when);
  schedule.at(process.last_notice, process.spawner->owner, std::move(fn));
}

void ProcessTable::reap(ProcessRecord& process) {
  if (process.spawner->alive) signal_group(process.group, SIGKILL);  // helpers go with their leader
  process.reaped = true;
  const ProcessRecord* reaper = process.spawner;
  if (!reaper->alive || !reaper->subreaper) return;
  // What the dead child has left behind outside its group comes to the subreaper, and is ended too.
  for (ProcessRecord* orphan : children(*reaper)) {
    if (orphan->spawner == reaper && orphan->announced) continue;
    const ProcessRecord* from = orphan->origin;
    while (from != nullptr && from != &process) from = from->origin;
    if (from != nullptr) signal(*orphan, SIGKILL);
  }
}

void ProcessTable::announce(ProcessRecord& process, ProcessEvents events) {
  process.announced = true;
  process.events = std::make_shared<ProcessEvents>(std::move(events));
  for (auto& notice : std::exchange(process.unannounced, {})) after_notices(process, std::move(notice));
}

void ProcessTable::bury() {
  while (!dead_.empty()) {
    ProcessRecord& process = *dead_.back();
    dead_.pop_back();
    cluster_.schedule().drop(process.owner);
    process.handlers.clear();
    process.pending.clear();
    for (const auto& child : processes_) {
      if (child->spawner == &process) child->events.reset();
    }
    process.actor.reset();
  }
}

}  // namespace holdfast::sim
