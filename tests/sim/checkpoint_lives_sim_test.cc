// A job's life in checkpoints, on a machine that loses power and on an object store that fails: writers that save whole
// and incremental ones, die anywhere, and start again. Many seeds.
#include <gtest/gtest.h>

#include "sim/random.h"
#include "sim/seeds.h"
#include "sim/sim_objects.h"
#include "sim/sim_world.h"
#include "store/incremental.h"
#include "store/test_checkpoints.h"
#include "world/object_tree.h"

namespace holdfast::store {
namespace {

constexpr std::uint64_t kSeeds = 1000;
constexpr std::uint32_t kWriters = 4;
constexpr int kLives = 6;

/// Where the job writes, and how it is made to fail.
class Place {
 public:
  virtual ~Place() = default;
  virtual world::FileTree& files() = 0;
  virtual std::string path() const = 0;
  /// What has to be called before files() counts again.
  virtual void restart() = 0;
  virtual void die_within(sim::SimRandom& random) = 0;
  virtual void calm() = 0;
};

class OnDisk final : public Place {
 public:
  explicit OnDisk(std::uint64_t seed) : world_(seed) {}
  world::FileTree& files() override { return world_.disk(); }
  std::string path() const override { return "/ckpt"; }
  void restart() override { world_.restart(); }
  void die_within(sim::SimRandom& random) override {
    sim::DiskPolicy& policy = world_.disk_policy();
    policy.read_error = policy.write_error = policy.sync_error = policy.name_error = random.chance(0.3) ? 0.02 : 0;
    if (random.chance(0.7)) world_.crash_after(random.below(300));
  }
  void calm() override {
    sim::DiskPolicy& policy = world_.disk_policy();
    policy.read_error = policy.write_error = policy.sync_error = policy.name_error = 0;
  }

 private:
  sim::SimWorld world_;
};

class OnObjects final : public Place {
 public:
  explicit OnObjects(std::uint64_t seed) : objects_(seed) {}
  world::FileTree& files() override { return tree_; }
  std::string path() const override { return "s3://bucket/ckpt"; }
  void restart() override { objects_.restart(); }
  void die_within(sim::SimRandom& random) override {
    objects_.policy.refused = random.chance(0.3) ? 0.02 : 0;
    objects_.policy.answer_lost = random.chance(0.3) ? 0.02 : 0;
    if (random.chance(0.7)) objects_.kill_after(random.below(300));
  }
  void calm() override { objects_.policy = {}; }

 private:
  sim::SimObjects objects_;
  world::ObjectTree tree_{objects_, "s3://bucket/", 1};
};

/// The job: some tensors move at every step, others once in a while, so that incremental checkpoints share files.
class Job {
 public:
  Job(Place& place, std::uint64_t seed) : place_(place), random_(seed) {}

  /// Opens an epoch, resumes, and saves until it dies or has saved enough.
  void live(bool faults) {
    place_.restart();
    place_.calm();
    CheckpointDir dir(place_.files(), place_.path(), {.keep = 1 + random_.below(2)});
    resume(dir);
    if (testing::Test::HasFailure()) return;
    if (faults) place_.die_within(random_);
    const Result<Epoch> epoch = dir.open_epoch();
    if (!epoch || !dir.remove_partial()) return;
    epoch_ = *epoch;
    for (int saves = 0; saves < 4; ++saves) {
      ++step_;
      if (!save(dir)) return;
      acknowledged_ = {.epoch = epoch_, .step = step_};
    }
  }

  /// After a calm life nothing is left but what the checkpoints need.
  std::string leftovers() {
    const auto names = place_.files().list(place_.path());
    if (!names) return names.error().message();
    std::set<std::string> needed;
    for (const std::string& name : *names) {
      if (!parse_checkpoint_name(name)) continue;
      const auto manifest = read_manifest(place_.files(), place_.path() + "/" + name);
      if (!manifest) continue;
      needed.insert(name + "/" + kManifestFile);
      for (const ShardRecord& shard : manifest->shards) needed.insert(name + "/" + shard.file);
      for (const KeptFile& kept : kept_files(*manifest)) needed.insert(kept.checkpoint + "/" + kept.file);
    }
    for (const std::string& name : *names) {
      if (parse_fence_name(name)) continue;
      const auto files = place_.files().list(place_.path() + "/" + name);
      if (!files) return files.error().message();
      for (const std::string& file : *files) {
        if (!needed.contains(name + "/" + file)) return name + "/" + file + " is left";
      }
    }
    return "";
  }

 private:
  /// What the state is after `step`, whichever life computed it.
  static Bytes tensor(Rank writer, bool frozen, Step step) {
    return test_bytes(
        writer * 1000 + (frozen ? static_cast<std::uint64_t>(step) / 5 : 500 + static_cast<std::uint64_t>(step)),
        frozen ? 4000 : 40);
  }

  void resume(CheckpointDir& dir) {
    known_ = {};
    const auto survey = dir.newest();
    ASSERT_TRUE(survey) << survey.error().message();
    if (!survey->newest) {
      ASSERT_FALSE(acknowledged_) << "a committed step is lost";
      step_ = 0;
      return;
    }
    const CheckpointId id = survey->newest->id;
    ASSERT_TRUE(!acknowledged_ || id >= *acknowledged_) << "a committed step is lost";
    const auto open = OpenCheckpoint::open(place_.files(), survey->newest->dir);
    ASSERT_TRUE(open) << open.error().message();
    for (Rank writer = 0; writer < kWriters; ++writer) {
      for (const bool frozen : {false, true}) {
        const Bytes expected = tensor(writer, frozen, id.step);
        Bytes got(expected.size());
        const WantedBox box[] = {{name_of(writer, frozen), {{0}, {got.size()}}, got}};
        const auto read = open->read(box, 1);
        ASSERT_TRUE(read) << read.error().message();
        ASSERT_EQ(got, expected) << "corrupt load";
      }
    }
    known_ = *KnownParts::of(*open);
    step_ = id.step;
  }

  static std::string name_of(Rank writer, bool frozen) {
    return (frozen ? "frozen" : "moving") + std::to_string(writer);
  }

  bool save(CheckpointDir& dir) {
    const std::string path = dir.checkpoint_path({.epoch = epoch_, .step = step_});
    const bool incremental = random_.chance(0.7);
    Manifest manifest{
        .run_id = "r", .step = step_, .epoch = epoch_, .world_size = kWriters, .structure = "{}", .shards = {}};
    KnownParts known;
    for (Rank writer = 0; writer < kWriters; ++writer) {
      const Bytes moving = tensor(writer, false, step_), frozen = tensor(writer, true, step_);
      const std::vector<TensorData> tensors = {{name_of(writer, false), "U8", {moving.size()}, moving},
                                               {name_of(writer, true), "U8", {frozen.size()}, frozen}};
      auto shard = write_incremental_shard(place_.files(), path, writer, kWriters, tensors, {},
                                           incremental ? known_ : KnownParts{});
      if (!shard) return false;
      manifest.shards.push_back(shard->record);
      for (auto& [name, part] : shard->known.parts) {
        part.file += known.files.size();
        known.parts[name] = part;
      }
      known.files.insert(known.files.end(), shard->known.files.begin(), shard->known.files.end());
    }
    if (!dir.commit(manifest)) return false;
    known_ = std::move(known);
    return true;
  }

  Place& place_;
  sim::SimRandom random_;
  Epoch epoch_ = 0;
  Step step_ = 0;
  std::optional<CheckpointId> acknowledged_;
  KnownParts known_;
};

template <typename Kind>
void live_many_lives() {
  for (const std::uint64_t seed : sim::seeds(kSeeds)) {
    HOLDFAST_SIM_TRACE(seed);
    Kind place(seed);
    Job job(place, seed);
    for (int life = 0; life < kLives; ++life) {
      job.live(/*faults=*/true);
      if (testing::Test::HasFailure()) return;
    }
    job.live(/*faults=*/false);
    ASSERT_EQ(job.leftovers(), "");
  }
}

TEST(CheckpointLives, S30CrashesAndTornWritesLoseNoCommittedStep) { live_many_lives<OnDisk>(); }

TEST(CheckpointLives, S30ErrorsOfAnObjectStoreLoseNoCommittedStep) { live_many_lives<OnObjects>(); }

}  // namespace
}  // namespace holdfast::store
