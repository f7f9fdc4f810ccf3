#include "app/ckpt_place.h"

#include <cstdlib>

#include "store/checkpoint_copy.h"
#include "store/open_checkpoint.h"
#include "world/parallel.h"
#include "world/real_world.h"

namespace holdfast::app {

ManifestSize size_of(const store::Manifest& manifest) {
  ManifestSize size;
  for (const store::ShardRecord& shard : manifest.shards) size.own += shard.bytes;
  for (const store::KeptFile& kept : store::kept_files(manifest)) size.shared += kept.bytes;
  return size;
}

CkptPlace::CkptPlace()
    : world_(world::make_real_world()),
      settings_(world::remote_settings([](const char* name) { return std::getenv(name); })),
      files_(world_->disk(), world_->random(), settings_ ? *settings_ : world::RemoteSettings{}),
      progress_(world_->clock()),
      counted_(files_, progress_) {}

Result<std::unique_ptr<store::CheckpointDir>> CkptPlace::directory(const std::string& name, std::size_t keep) {
  if (!settings_ && world::is_remote(name)) return settings_.error();
  return std::make_unique<store::CheckpointDir>(files_, TensorsPlace::named(name),
                                                store::RetentionPolicy{.keep = keep});
}

Result<std::vector<std::string>> CkptPlace::checkpoints(const std::string& name, std::optional<Step> step) {
  const std::string path = TensorsPlace::named(name);
  if (!settings_ && world::is_remote(name)) return settings_.error();
  if (files_.exists(path + "/" + store::kManifestFile)) return std::vector<std::string>{path};
  store::CheckpointDir dir(files_, path, {});
  const store::CheckpointList all = TRY(dir.all(), name);
  std::vector<std::string> found;
  for (const store::ListedCheckpoint& entry : all.checkpoints) {
    if (entry.committed && (!step || entry.id.step == *step)) found.push_back(dir.checkpoint_path(entry.id));
  }
  if (!found.empty()) return found;
  const std::string which = step ? " of step " + std::to_string(*step) : "";
  return Error(Code::NotFound, name + ": there is no committed checkpoint" + which);
}

Result<store::Manifest> CkptPlace::verify(const std::string& dir) {
  auto manifest = store::read_manifest(files_, dir);
  if (!manifest) return manifest;
  const ManifestSize size = size_of(*manifest);
  progress_.begin("verifying", size.own + size.shared);
  auto verified = store::verify_checkpoint(counted_, dir, world::usable_cpus());
  progress_.end();
  return verified;
}

Result<CopiedCheckpoint> CkptPlace::copy(const std::string& from, const std::string& to, std::optional<Step> step) {
  const std::vector<std::string> found = TRY(checkpoints(from, step), "copy");
  const auto target = TRY(directory(to, kKeepAll), "copy");
  if (step || found.size() == 1) return copy_to(found.front(), *target, std::nullopt);
  const auto source = TRY(directory(from, kKeepAll), "copy");
  const store::CheckpointSurvey survey = TRY(source->newest(), "copy");
  if (!survey.newest) return Error(Code::Corrupt, from + ": no checkpoint verifies");
  return copy_to(survey.newest->dir, *target, std::nullopt);
}

Result<CopiedCheckpoint> CkptPlace::restore(const std::string& name, Step step) {
  const std::vector<std::string> found = TRY(checkpoints(name, step), "restore");
  const auto dir = TRY(directory(name, kKeepAll), "restore");
  TRY(verify(found.front()), "restore");  // before a run is shut out for it
  const Epoch epoch = TRY(dir->open_epoch(), "restore");
  return copy_to(found.front(), *dir, epoch);
}

Result<CopiedCheckpoint> CkptPlace::copy_to(const std::string& from, store::CheckpointDir& to,
                                            std::optional<Epoch> epoch) {
  const store::OpenCheckpoint open = TRY(store::OpenCheckpoint::open(counted_, from), "copy");
  const store::Manifest& manifest = open.manifest();
  const store::CheckpointId id{.epoch = epoch.value_or(manifest.epoch), .step = manifest.step};
  const ManifestSize size = size_of(manifest);
  progress_.begin("copying", size.own + size.shared);
  const Status copied = store::copy_checkpoint(open, files_, to, id, world::usable_cpus());
  progress_.end();
  if (!copied) return copied.error();
  const std::string written = to.checkpoint_path(id);
  return CopiedCheckpoint { from, written, size_of(TRY(store::read_manifest(files_, written), "copy")).own };
}

}  // namespace holdfast::app
