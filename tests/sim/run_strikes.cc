#include "tests/sim/run_strikes.h"

#include <algorithm>
#include <csignal>
#include <tuple>
#include <utility>

namespace holdfast::trial {

using std::chrono::hours;
using std::chrono::microseconds;

namespace {
constexpr double kCloseTogether = 0.5;  // a strike comes right after the one before it
}

Strikes::Strikes(RunWorld& world, sim::SimRandom random, const std::vector<Strike>& kinds, int least, int most)
    : world_(world), random_(std::move(random)) {
  const auto spread = static_cast<std::uint64_t>(most) - static_cast<std::uint64_t>(least);
  const auto count = static_cast<std::size_t>(least) + random_.below(spread + 1);
  const Step steps = world.setup().training.steps;
  for (std::size_t i = 0; i < count; ++i) {
    Plan plan{.at = static_cast<Step>(random_.below(static_cast<std::uint64_t>(steps + 1))) - 1,
              .after = random_.draw({Nanos{}, milliseconds(30)}),
              .kind = kinds[random_.below(kinds.size())]};
    if (!plans_.empty() && random_.chance(kCloseTogether)) {
      plan.at = plans_.back().at;
      plan.after = plans_.back().after + random_.draw({Nanos{}, milliseconds(random_.chance(0.5) ? 5 : 100)});
    }
    plans_.push_back(plan);
  }
  std::sort(plans_.begin(), plans_.end(),
            [](const Plan& a, const Plan& b) { return std::tie(a.at, a.after) < std::tie(b.at, b.after); });
}

void Strikes::look() {
  for (; next_ < plans_.size() && plans_[next_].at <= world_.oracle().begun(); ++next_) {
    world_.cluster().after(plans_[next_].after, [this, kind = plans_[next_].kind] { fire(kind); });
  }
}

void Strikes::fire(Strike kind) {
  if (!world_.node().up() || !world_.launcher().alive()) return;
  if (kind == Strike::AskToStop && world_.agent() == nullptr) return;  // nobody is there to hear it
  ++fired_;
  world_.cluster().trace(nullptr, "strike " + std::to_string(static_cast<int>(kind)));
  const auto calls = [this](std::uint64_t most) { return 1 + random_.below(most); };
  switch (kind) {
    case Strike::KillOne: return kill(victims(1));
    case Strike::KillRankZero: return kill({world_.ranks().empty() ? 0 : world_.ranks().front()});
    case Strike::KillTwo: return kill(victims(2));
    case Strike::KillAll: return kill(world_.ranks());
    case Strike::KillAtACall:
      for (const pid_t pid : victims(1)) world_.cluster().world_of(pid).kill_after(calls(60));
      return;
    case Strike::KillSpare: return kill(world_.spares());
    case Strike::KillForkServer: return kill(world_.running("holdfast.fork_server"));
    case Strike::KillStore: return kill(world_.running("holdfast.store_server"));
    case Strike::Stop: return stop(true);
    case Strike::StopAWhile: return stop(false);
    case Strike::Freeze: return hold(&sim::SimWorld::freeze, &sim::SimWorld::thaw, true);
    case Strike::FreezeAWhile: return hold(&sim::SimWorld::freeze, &sim::SimWorld::thaw, false);
    case Strike::CutOff: return hold(&sim::SimWorld::isolate, &sim::SimWorld::rejoin, true);
    case Strike::CutOffAWhile: return hold(&sim::SimWorld::isolate, &sim::SimWorld::rejoin, false);
    case Strike::JumpWallClock: return world_.node().jump_wall(hours(1) * (random_.chance(0.5) ? 1 : -1));
    case Strike::FillDisk: return hurt_disk({.bytes_max = world_.node().disk().bytes_used() + random_.below(2000)});
    case Strike::SlowDisk: return hurt_disk({.per_call = milliseconds(5), .per_sync = milliseconds(200)});
    case Strike::FailDisk: return hurt_disk({.write_error = 0.05, .sync_error = 0.05});
    case Strike::FailNames: return hurt_disk({.name_error = 0.03});
    case Strike::FreezeAll:
      for (const pid_t pid : world_.ranks()) world_.cluster().world_of(pid).freeze();
      return;
    case Strike::FreezeLauncherAWhile:
      world_.launcher().freeze();
      return world_.cluster().after(random_.draw({milliseconds(1), seconds(15)}),
                                    [&launcher = world_.launcher()] { launcher.thaw(); });
    case Strike::FlipAndKillAll: flip_newest(); return kill(world_.ranks());
    case Strike::KillLauncher: return world_.launcher().signal(SIGKILL);
    case Strike::KillLauncherAtACall: return world_.launcher().kill_after(calls(200));
    case Strike::PowerFailure: return world_.node().crash();
    case Strike::PowerFailureAtACall: return world_.node().crash_after(calls(60));
    case Strike::AskToStop: return world_.launcher().signal(SIGTERM);
  }
}

std::vector<pid_t> Strikes::victims(std::size_t count) {
  std::vector<pid_t> left = world_.ranks();
  std::vector<pid_t> chosen;
  while (chosen.size() < count && !left.empty()) {
    const auto victim = left.begin() + static_cast<std::ptrdiff_t>(random_.below(left.size()));
    chosen.push_back(*victim);
    left.erase(victim);
  }
  return chosen;
}

void Strikes::kill(const std::vector<pid_t>& pids) {
  for (const pid_t pid : pids) {
    if (sim::ProcessRecord* process = world_.cluster().processes().find(pid)) {
      world_.cluster().processes().signal(*process, SIGKILL);
    }
  }
}

void Strikes::hold(void (sim::SimWorld::*begin)(), void (sim::SimWorld::*end)(), bool for_good) {
  for (const pid_t pid : victims(1)) {
    sim::SimWorld& victim = world_.cluster().world_of(pid);
    (victim.*begin)();
    if (for_good) continue;
    world_.cluster().after(random_.draw({milliseconds(1), seconds(4)}), [&victim, end] { (victim.*end)(); });
  }
}

void Strikes::stop(bool for_good) {
  for (const pid_t pid : victims(1)) {
    sim::SimWorld& victim = world_.cluster().world_of(pid);
    victim.signal(SIGSTOP);
    if (for_good) continue;
    world_.cluster().after(random_.draw({milliseconds(1), milliseconds(400)}), [&victim] { victim.signal(SIGCONT); });
  }
}

void Strikes::hurt_disk(const sim::DiskPolicy& policy) {
  world_.node().disk().policy = policy;
  world_.cluster().after(random_.draw({milliseconds(10), milliseconds(300)}),
                         [this] { world_.node().disk().policy = {}; });
}

void Strikes::flip_newest() {
  const auto newest = world_.oracle().newest_committed();
  if (!newest) return;
  const std::string dir = world_.setup().options.ckpt_dir + "/" + store::checkpoint_name(*newest);
  const auto names = world_.node().disk().list(dir);
  if (!names || names->empty()) return;
  const std::string path = dir + "/" + (*names)[random_.below(names->size())];
  const auto file = world_.node().disk().open(path);
  if (!file) return;
  const std::size_t size = (*file)->bytes.size();
  world_.node().disk().close(*file);
  world_.node().disk().flip_byte(path, random_.below(size));
  world_.oracle().damage(*newest);
}

}  // namespace holdfast::trial
