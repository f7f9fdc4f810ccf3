#include "tests/sim/run_world.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <numeric>
#include <typeinfo>

#include "store/checkpoint.h"

namespace holdfast::trial {

namespace {

constexpr const char* kCkptDir = "/ckpt";
constexpr std::uint64_t kNever = std::uint64_t{1} << 60;
constexpr world::Nanos kEndless = minutes(60);

/// The (mangled) name of a message and its epoch, for traces.
std::string describe(BytesView bytes) {
  const auto message = run::decode(bytes);
  if (!message) return "garbage";
  return std::visit(
      [](const auto& body) {
        std::string text = typeid(body).name();
        if constexpr (requires { body.epoch; }) text += " of epoch " + std::to_string(body.epoch);
        if constexpr (requires { body.step; }) text += ", step " + std::to_string(body.step);
        return text;
      },
      *message);
}

/// Prints the port it listens on and waits.
class FakeStore final : public sim::Actor {
 public:
  explicit FakeStore(sim::SimWorld& world) {
    world.loop().call_after(milliseconds(20), [&world] { world.print(world::Stream::Out, "port 1\n"); });
  }
};

class Idle final : public sim::Actor {};

}  // namespace

class LauncherActor final : public sim::Actor {
 public:
  LauncherActor(RunWorld& whole, sim::SimWorld& world, run::RunOptions options) : whole_(whole) {
    world.become_subreaper();
    agent_ = std::make_unique<run::Agent>(world, std::move(options));
    whole_.agent_ = agent_.get();
    world.processes().on_signal(SIGTERM, [this] { agent_->request_stop("SIGTERM"); });
    const Status started = agent_->start();
    if (!started) {
      ADD_FAILURE() << started.error().message();
      world.exit(run::kExitFailed);
    }
  }
  ~LauncherActor() override {
    if (agent_->ended()) whole_.record_ = agent_->record();
    if (whole_.agent_ == agent_.get()) whole_.agent_ = nullptr;
  }
  int exit_code() const override { return agent_->exit_code(); }

 private:
  RunWorld& whole_;
  std::unique_ptr<run::Agent> agent_;
};

RunSetup usual_setup(sim::SimRandom& random) {
  RunSetup setup;
  setup.training.steps = 15 + static_cast<Step>(random.below(11));
  run::RunOptions& options = setup.options;
  options.command = {"train.py"};
  options.interpreter = "python";
  options.policy.world_size = 2 + static_cast<std::uint32_t>(random.below(3));
  options.policy.spares = static_cast<std::uint32_t>(random.below(3));
  options.policy.max_restarts = 1000;
  options.policy.tries_without_progress = 40;
  options.policy.start_patience = seconds(20);
  options.policy.rejoin_patience = seconds(5);
  options.deadlines.start = seconds(20);
  options.run_id = "trial";
  options.secret = "a secret";
  options.ckpt_dir = kCkptDir;
  if (random.chance(0.7)) {
    options.ckpt_every_steps = 3 + static_cast<Step>(random.below(5));
  } else {
    options.ckpt_every = random.draw({milliseconds(30), milliseconds(150)});
  }
  options.ckpt_keep = 1 + static_cast<std::uint32_t>(random.below(3));
  options.print = [](world::Stream, std::string_view) {};
  return setup;
}

RunWorld::RunWorld(std::uint64_t seed, RunSetup setup)
    : setup_(std::move(setup)),
      cluster_(seed),
      oracle_(cluster_, setup_.options.policy.world_size, setup_.training.steps) {
  setup_.training.oracle = &oracle_;
  cluster_.network().describe = describe;
  stamp_marks_by(&cluster_);
  add_programs();
}

RunWorld::~RunWorld() {
  cluster_.shut_down();  // ranks tell the oracle that they are gone
  stamp_marks_by(nullptr);
}

void RunWorld::add_programs() {
  const auto rank = [this](sim::SimWorld& world, const world::SpawnSpec&) {
    return std::make_unique<FakeRank>(world, setup_.training);
  };
  for (const char* name : {"train.py", "python", "-m holdfast.worker"}) cluster_.add_program(name, rank);
  cluster_.add_program("-m holdfast.store_server", [](sim::SimWorld& world, const world::SpawnSpec&) {
    return std::make_unique<FakeStore>(world);
  });
  cluster_.add_program("helper", [](sim::SimWorld&, const world::SpawnSpec&) { return std::make_unique<Idle>(); });
  cluster_.add_program("launcher", [this](sim::SimWorld& world, const world::SpawnSpec&) {
    run::RunOptions options = setup_.options;
    options.run_dir = "/run/" + std::to_string(launches_);
    return std::make_unique<LauncherActor>(*this, world, std::move(options));
  });
}

void RunWorld::launch() {
  if (launches_ > 0) oracle_.new_launcher();
  ++launches_;
  record_.reset();
  agent_ = nullptr;
  world::SpawnSpec spec;
  spec.argv = {"launcher"};
  launcher_ = &cluster_.spawn(node(), spec);
}

bool RunWorld::run(const std::function<void()>& each_event) {
  return cluster_.run_until(
      [&] {
        look_at_disk();
        if (!launcher_->alive()) return true;
        if (each_event) each_event();
        return false;
      },
      kEndless);
}

void RunWorld::look_at_disk() {
  if (node().disk_calls() == looked_at_) return;
  looked_at_ = node().disk_calls();
  std::set<store::CheckpointId> committed;
  const auto names = node().disk().list(kCkptDir);
  if (!names) return;
  for (const std::string& name : *names) {
    const auto id = store::parse_checkpoint_name(name);
    if (id && node().disk().exists(std::string(kCkptDir) + "/" + name + "/" + store::kManifestFile))
      committed.insert(*id);
  }
  oracle_.sees_committed(committed);
}

std::set<Step> RunWorld::committed() const {
  std::set<Step> steps;
  for (const store::CheckpointId& id : oracle_.committed()) steps.insert(id.step);
  return steps;
}

// ---- who is there ----

std::vector<pid_t> RunWorld::running(const std::string& program) {
  std::vector<pid_t> found;
  for (const sim::ProcessRecord* process : cluster_.processes().alive()) {
    const auto& argv = process->spec.argv;
    if (std::find(argv.begin(), argv.end(), program) != argv.end()) found.push_back(process->pid);
  }
  return found;
}

std::vector<pid_t> RunWorld::ranks() {
  std::vector<pid_t> found;
  for (const auto& [rank, pid] : oracle_.ranks()) {
    if (cluster_.world_of(pid).alive()) found.push_back(pid);
  }
  return found;
}

std::vector<pid_t> RunWorld::spares() {
  std::vector<pid_t> found = running("train.py");
  const std::vector<pid_t> working = ranks();
  std::erase_if(found, [&](pid_t pid) { return std::find(working.begin(), working.end(), pid) != working.end(); });
  return found;
}

// ---- what must hold at the end ----

void RunWorld::check_end() {
  cluster_.run_for(seconds(2));
  for (const sim::ProcessRecord* process : cluster_.processes().alive()) {
    if (process->spec.argv.empty()) continue;  // the test's own
    ADD_FAILURE() << "process " << process->pid << " (" << process->spec.argv.back()
                  << ") lives 2 s after its launcher";
  }
  check_checkpoints();
  if (record_) check_record();
  for (const std::string& violation : oracle_.violations()) ADD_FAILURE() << violation;
}

void RunWorld::check_checkpoints() {
  node().disk().policy = {};
  node().crash_after(kNever);
  look_at_disk();
  world::Disk& disk = cluster_.main(node()).disk();
  const auto names = node().disk().list(kCkptDir);
  const auto damaged = oracle_.damaged();
  for (const std::string& name : names ? *names : std::vector<std::string>{}) {
    const auto id = store::parse_checkpoint_name(name);
    const std::string dir = std::string(kCkptDir) + "/" + name;
    if (!id || damaged.contains(*id) || !disk.exists(dir + "/" + store::kManifestFile)) continue;
    const auto checkpoint = store::load_checkpoint(disk, dir);
    if (!checkpoint) {
      ADD_FAILURE() << name << ": " << checkpoint.error().message();
      continue;
    }
    EXPECT_EQ(checkpoint->tensors().size(), setup_.options.policy.world_size) << name;
    for (const store::LoadedTensor& tensor : checkpoint->tensors()) {
      ByteReader in(tensor.bytes);
      State state;
      state.applied = in.get<Step>();
      state.hash = in.get<std::uint64_t>();
      EXPECT_EQ(in.get<Epoch>(), id->epoch) << name << ", " << tensor.name;
      EXPECT_EQ(state.applied, id->step) << name << ", " << tensor.name;
      EXPECT_EQ(state, true_state(id->step)) << name << ", " << tensor.name;
    }
  }
}

void RunWorld::check_record() {
  const auto sum = std::accumulate(record_->goodput.begin(), record_->goodput.end(), world::Nanos{});
  EXPECT_EQ(sum, record_->ended_at - record_->began_at) << "the buckets of the launcher's time";
  EXPECT_EQ(record_->steps_lost, 0u);
}

void RunWorld::check_success() {
  EXPECT_EQ(launcher_->exit_status(), world::ExitStatus{}) << (record_ ? record_->why : "killed");
  if (!record_) return;
  EXPECT_TRUE(oracle_.all_finished());
  EXPECT_EQ(record_->steps, setup_.training.steps);
}

// ---- quiet ----

Quiet::Quiet() {
  if (std::getenv("HOLDFAST_SIM_SEED") != nullptr) return;  // NOLINT(concurrency-mt-unsafe): nobody sets it
  kept_ = ::dup(STDERR_FILENO);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ::dup2(nowhere, STDERR_FILENO);
  ::close(nowhere);
}

Quiet::~Quiet() {
  if (kept_ < 0) return;
  ::dup2(kept_, STDERR_FILENO);
  ::close(kept_);
}

}  // namespace holdfast::trial
