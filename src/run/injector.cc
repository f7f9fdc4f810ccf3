#include "run/injector.h"

#include <algorithm>
#include <csignal>

#include "base/log.h"

namespace holdfast::run {

using world::Nanos;

namespace {
// Stopped 4 of 5 ms: what a rank gets that shares its core with four others.
constexpr Nanos kStolen = std::chrono::milliseconds(24);
constexpr Nanos kGranted = std::chrono::milliseconds(6);
// A rank that acts out a fault in a step must know before it begins it.
constexpr Step kOrderAhead = 3;
}  // namespace

Injector::Injector(world::World& world, const RunOptions& options, Workers& workers, const Coordinator& coordinator,
                   std::function<std::string()> newest_checkpoint)
    : world_(world), workers_(workers), coordinator_(coordinator), newest_checkpoint_(std::move(newest_checkpoint)) {
  for (const PlannedFault& plan : options.faults) faults_.push_back({.plan = plan, .fired = false, .began_at = {}});
}

void Injector::on_mark(Rank rank, const telemetry::Event& event) {
  using telemetry::Mark;
  for (Injected& fault : faults_) {
    const PlannedKind kind = fault.plan.kind;
    const bool mine = std::find(fault.plan.ranks.begin(), fault.plan.ranks.end(), rank) != fault.plan.ranks.end();
    const bool acted_in_step = kind == PlannedKind::Sleep || kind == PlannedKind::Gil;
    const Step due = acted_in_step ? fault.plan.step - kOrderAhead : fault.plan.step;
    if (!fault.fired && event.mark == Mark::StepBegin && event.step >= due) fire(fault, Nanos(event.time_ns));
    if (!fault.fired || fault.began_at || !mine) continue;
    if (acted_in_step && event.mark == Mark::StepBegin && event.step >= fault.plan.step) {
      fault.began_at = Nanos(event.time_ns);
    }
  }
}

void Injector::fire(Injected& fault, Nanos now) {
  fault.fired = true;
  log_info("acting out " + std::string(planned_word(fault.plan.kind)) + " at step " + std::to_string(fault.plan.step));
  const Nanos really = world_.clock().steady();
  switch (fault.plan.kind) {
    case PlannedKind::Sleep: return order(fault, "sleep");
    case PlannedKind::Gil: return order(fault, "spin");
    case PlannedKind::DiskFull: order(fault, "disk_full"); break;  // a save under way may be the first that it meets
    case PlannedKind::WriterCrash: order(fault, "writer_crash"); break;
    case PlannedKind::Sigkill:
      for (Rank rank : fault.plan.ranks) kill(rank);
      break;
    case PlannedKind::KillInRecovery:
      kill_next_recovery_ = fault.plan.ranks.back();
      kill(fault.plan.ranks.front());
      break;
    case PlannedKind::Sigstop:
      for (Rank rank : fault.plan.ranks) {
        if (const auto worker = coordinator_.worker_of(rank)) workers_.signal(*worker, SIGSTOP);
      }
      break;
    case PlannedKind::Slow:
      for (Rank rank : fault.plan.ranks) {
        const auto length = std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(fault.plan.seconds));
        if (const auto worker = coordinator_.worker_of(rank)) steal_cpu(rank, *worker, now + length, true);
      }
      break;
    case PlannedKind::FlipCheckpoint:
      flip_newest_checkpoint();
      for (Rank rank = 0; rank < coordinator_.policy().world_size; ++rank) kill(rank);
      break;
  }
  fault.began_at = really;
}

void Injector::order(Injected& fault, const char* kind) {
  for (Rank rank : fault.plan.ranks) {
    if (const auto worker = coordinator_.worker_of(rank))
      workers_.send(*worker, Act{.kind = kind, .step = fault.plan.step});
  }
}

void Injector::kill(Rank rank) {
  if (const auto worker = coordinator_.worker_of(rank)) workers_.signal(*worker, SIGKILL);
}

void Injector::steal_cpu(Rank rank, WorkerId worker, Nanos until, bool stop) {
  if (coordinator_.worker_of(rank) != worker) return;  // it was replaced
  if (world_.clock().steady() >= until) {
    workers_.signal(worker, SIGCONT);
    return;
  }
  workers_.signal(worker, stop ? SIGSTOP : SIGCONT);
  world_.loop().call_after(stop ? kStolen : kGranted,
                           [this, rank, worker, until, stop] { steal_cpu(rank, worker, until, !stop); });
}

void Injector::on_mode(Mode mode) {
  if (mode != Mode::Restoring || !kill_next_recovery_) return;
  // Posted: the message that sends the ranks into their new group goes out first.
  world_.loop().post([this, rank = *kill_next_recovery_] { kill(rank); });
  kill_next_recovery_.reset();
}

void Injector::flip_newest_checkpoint() {
  const std::string directory = newest_checkpoint_();
  if (directory.empty()) return log_warn("flip_checkpoint: there is no checkpoint yet");
  auto names = world_.disk().list(directory);
  for (const std::string& name : names ? *names : std::vector<std::string>{}) {
    if (!name.ends_with(".safetensors")) continue;
    const std::string path = directory + "/" + name;
    auto bytes = world::read_file(world_.disk(), path, std::uint64_t{1} << 32);
    if (!bytes || bytes->empty()) continue;
    (*bytes)[bytes->size() / 2] ^= std::byte{1};
    auto file = world_.disk().create(path);
    if (file && (*file)->append(*bytes)) return;
  }
  log_warn("flip_checkpoint: no shard to damage in " + directory);
}

}  // namespace holdfast::run
