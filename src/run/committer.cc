#include "run/committer.h"

#include <memory>

namespace holdfast::run {

Committer::Committer(world::World& world, const RunOptions& options, CommitterEvents events)
    : world_(world),
      options_(options),
      events_(std::move(events)),
      dir_(world.disk(), options.ckpt_dir, {.keep = options.ckpt_keep}) {}

Result<Epoch> Committer::highest_epoch() { return dir_.highest_epoch(); }

void Committer::submit(std::function<void()> work, std::function<void()> done) {
  jobs_.push_back({std::move(work), std::move(done)});
  if (!busy_) run_next();
}

void Committer::run_next() {
  if (jobs_.empty()) return;
  busy_ = true;
  Job job = std::move(jobs_.front());
  jobs_.pop_front();
  world_.loop().background(std::move(job.work), [this, done = std::move(job.done)] {
    busy_ = false;
    done();
    if (!busy_) run_next();
  });
}

void Committer::open_epoch(Epoch epoch) {
  epoch_ = epoch;
  pending_.clear();
  auto outcome = std::make_shared<Status>(Ok{});
  submit(
      [this, epoch, outcome] {
        *outcome = dir_.fence(epoch);
        if (*outcome) {
          if (auto removed = dir_.remove_partial(); !removed) *outcome = std::move(removed).error();
        }
      },
      [this, outcome] {
        if (!*outcome) events_.on_note("checkpoints: " + outcome->error().message());
      });
}

void Committer::on_shard(Rank rank, const ShardDone& shard) {
  if (shard.epoch != epoch_) {
    events_.on_note("refused a shard of step " + std::to_string(shard.step) + " from epoch " +
                    std::to_string(shard.epoch) + ": the run is in epoch " + std::to_string(epoch_));
    return;
  }
  Pending& pending = pending_[shard.step];
  if (!shard.error.empty()) {
    if (pending.failed.empty()) events_.on_failed(shard.step, rank, shard.error);
    pending.failed.insert(rank);
  } else {
    pending.shards[rank] = {.file = shard.file, .bytes = shard.bytes, .header_crc = shard.header_crc32c};
    if (!shard.structure.empty()) pending.structure = shard.structure;
  }
  // Until all have answered, somebody may still be writing there.
  if (pending.shards.size() + pending.failed.size() < options_.policy.world_size) return;
  Pending whole = std::move(pending);
  pending_.erase(pending_.begin(), pending_.upper_bound(shard.step));
  if (whole.failed.empty()) {
    commit(shard.step, std::move(whole));
  } else {
    const store::CheckpointId id{.epoch = epoch_, .step = shard.step};
    submit([this, id] { (void)dir_.discard(id); }, [] {});
  }
}

void Committer::commit(Step step, Pending pending) {
  store::Manifest manifest{.run_id = options_.run_id,
                           .step = step,
                           .epoch = epoch_,
                           .world_size = options_.policy.world_size,
                           .structure = std::move(pending.structure),
                           .shards = {}};
  for (auto& [rank, record] : pending.shards) manifest.shards.push_back(std::move(record));
  const std::string directory = dir_.checkpoint_path({.epoch = epoch_, .step = step});
  auto outcome = std::make_shared<Status>(Ok{});
  submit([this, manifest = std::move(manifest), outcome] { *outcome = dir_.commit(manifest); },
         [this, step, directory, outcome] {
           if (!*outcome) return events_.on_failed(step, std::nullopt, outcome->error().message());
           newest_directory_ = directory;
           events_.on_committed(step, directory);
           for (const store::PassedOver& damaged : dir_.last_retention().damaged) {
             events_.on_note("checkpoint " + damaged.checkpoint + " no longer verifies: " + damaged.why);
           }
         });
}

void Committer::find(std::function<void(Found)> done) {
  auto survey = std::make_shared<Result<store::CheckpointSurvey>>(store::CheckpointSurvey{});
  submit([this, survey] { *survey = dir_.newest(); },
         [this, survey, done = std::move(done)] {
           Found found;
           if (!*survey) {
             events_.on_note("checkpoints: " + survey->error().message());
           } else {
             found.passed_over = (*survey)->passed_over;
             if ((*survey)->newest) {
               found.step = (*survey)->newest->id.step;
               found.directory = (*survey)->newest->dir;
             }
           }
           newest_directory_ = found.directory;
           done(std::move(found));
         });
}

}  // namespace holdfast::run
