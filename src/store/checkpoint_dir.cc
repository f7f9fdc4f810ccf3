#include "store/checkpoint_dir.h"

#include <algorithm>

#include "base/check.h"
#include "store/open_checkpoint.h"

namespace holdfast::store {
namespace {

/// Files that a checkpoint's directory may hold; also what a crash left of them aside.
bool is_ours(std::string_view name) { return name.starts_with("shard-") || name.starts_with(kManifestFile); }

PassedOver passed_over(CheckpointId id, const Error& error) {
  return {checkpoint_name(id), error.code(), error.message()};
}

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

CheckpointDir::CheckpointDir(world::FileTree& files, std::string path, RetentionPolicy policy)
    : files_(files), path_(without_trailing_slashes(std::move(path))), policy_(policy) {
  CHECK(!path_.empty());
  CHECK(policy_.keep >= 1);
}

std::string CheckpointDir::checkpoint_path(CheckpointId id) const { return path_ + "/" + checkpoint_name(id); }

Status CheckpointDir::commit(const Manifest& manifest) {
  const CheckpointId id{manifest.epoch, manifest.step};
  const std::string doing = "commit " + checkpoint_name(id);
  if (manifest.step > kStepMax) return Error(Code::BadInput, doing + ": steps have at most 12 digits");
  const std::string text = TRY(manifest_to_text(manifest), doing);
  const Epoch highest = TRY(highest_epoch(), doing);
  if (manifest.epoch < highest) {
    return Error(Code::Conflict, doing + ": epoch " + std::to_string(highest) + " has taken over " + path_);
  }
  const std::string dir = checkpoint_path(id);
  TRY(check_shards(manifest, dir), doing);
  if (TRY(already_committed(id, text), doing)) return Ok{};

  // The shards' names and the directory's own last before the manifest can, whoever made them.
  TRY(make_durable_path(), doing);
  TRY(files_.sync_dir(dir), doing);
  TRY(files_.sync_dir(path_), doing);
  const Status written = files_.write_new(dir + "/" + kManifestFile, as_bytes(text));
  // Another writer of this epoch, or an answer that was lost: what is there decides.
  if (!written && (written.error().code() != Code::Conflict || !TRY(already_committed(id, text), doing))) {
    return Error(written.error()).in(doing);
  }

  Result<RetentionReport> retained = retain(/*act=*/true);
  retention_ = retained ? *std::move(retained) : RetentionReport{{}, {}, retained.error().message()};
  return Ok{};
}

Status CheckpointDir::fence(Epoch epoch) {
  const std::string doing = "fence epoch " + std::to_string(epoch) + " in " + path_;
  TRY(files_.make_dirs(path_), doing);
  TRY(make_durable_path(), doing);
  const Listing listing = TRY(list(), doing);
  if (listing.highest_epoch() > epoch) {
    return Error(Code::Conflict, doing + ": epoch " + std::to_string(listing.highest_epoch()) + " has taken over");
  }
  if (listing.fence != epoch) {
    const Status raised = raise_fence(epoch);
    if (!raised && raised.error().code() != Code::Conflict) return Error(raised.error()).in(doing);
  }
  // It may be there without having been synced, by a process that crashed in between.
  TRY(files_.sync_dir(path_), doing);
  // Older ones are only clutter now: the highest counts.
  for (const std::string& name : listing.fence_files) {
    if (parse_fence_name(name) != epoch) (void)files_.remove(path_ + "/" + name);
  }
  return Ok{};
}

Result<Epoch> CheckpointDir::open_epoch(Epoch at_least) {
  const std::string doing = "open an epoch in " + path_;
  TRY(files_.make_dirs(path_), doing);
  TRY(make_durable_path(), doing);
  const Epoch highest = TRY(highest_epoch(), doing);
  for (Epoch epoch = std::max(at_least, highest + 1);; ++epoch) {
    const Status raised = raise_fence(epoch);
    if (raised) {
      TRY(fence(epoch), doing);  // finds out whether somebody was quicker still
      return epoch;
    }
    if (raised.error().code() != Code::Conflict) return Error(raised.error()).in(doing);
  }
}

Status CheckpointDir::raise_fence(Epoch epoch) {
  return files_.write_new(path_ + "/" + fence_name(epoch),
                          as_bytes("Checkpoints of epochs before " + std::to_string(epoch) + " are refused.\n"));
}

Result<Epoch> CheckpointDir::highest_epoch() {
  return TRY(list(), "look for the newest epoch")
  .highest_epoch();
}

Result<CheckpointSurvey> CheckpointDir::newest() {
  Listing listing = TRY(list(), "find the newest checkpoint");
  CheckpointSurvey survey;
  survey.foreign = std::move(listing.foreign);
  for (const CheckpointId id : listing.ids) {
    Result<Manifest> manifest = verify(id);
    if (manifest) {
      verified_.insert(id);
      survey.newest = FoundCheckpoint{id, checkpoint_path(id), *std::move(manifest)};
      break;
    }
    survey.passed_over.push_back(passed_over(id, manifest.error()));
  }
  return survey;
}

Result<CheckpointList> CheckpointDir::all() {
  TRY(files_.list(path_), "list");
  Listing listing = TRY(list(), "list");
  CheckpointList all;
  all.foreign = std::move(listing.foreign);
  for (const CheckpointId id : listing.ids) {
    ListedCheckpoint entry{id, false, std::nullopt, ""};
    const Result<bool> is_committed = committed(id);
    entry.committed = is_committed && *is_committed;
    if (entry.committed) {
      Result<Manifest> manifest = read_manifest(files_, checkpoint_path(id));
      if (manifest) {
        entry.manifest = *std::move(manifest);
      } else {
        entry.why = manifest.error().message();
      }
    } else {
      entry.why = is_committed ? "it has no manifest: it was never committed" : is_committed.error().message();
    }
    all.checkpoints.push_back(std::move(entry));
  }
  return all;
}

Result<RetentionReport> CheckpointDir::prune(bool act) {
  TRY(files_.list(path_), "prune");
  return retain(act);
}

Result<std::vector<std::string>> CheckpointDir::remove_partial() {
  const std::string doing = "clean " + path_;
  const Listing listing = TRY(list(), doing);
  const std::set<std::string> needed = TRY(needed_by(listing.ids), doing);
  std::vector<std::string> removed;
  std::optional<CheckpointId> newest_committed;
  for (const CheckpointId id : listing.ids) {
    const Result<bool> is_committed = committed(id);
    if (!is_committed) continue;
    if (*is_committed) {
      if (!newest_committed) newest_committed = id;
      continue;
    }
    const bool fenced = listing.fence && id.epoch < *listing.fence;
    const bool overtaken = newest_committed && newest_committed->epoch == id.epoch;
    if (!fenced && !overtaken) continue;
    const Result<bool> gone = remove_checkpoint(id, needed);
    if (!gone && gone.error().code() != Code::Conflict) return Error(gone.error()).in(doing);
    if (gone && *gone) removed.push_back(checkpoint_name(id));
  }
  return removed;
}

Status CheckpointDir::discard(CheckpointId id) {
  const std::string doing = "give up " + checkpoint_name(id);
  Result<bool> is_committed = committed(id);
  if (!is_committed && is_committed.error().code() == Code::NotFound) return Ok{};
  if (TRY(std::move(is_committed), doing)) return Error(Code::Conflict, doing + ": it is committed");
  const Listing listing = TRY(list(), doing);
  const std::set<std::string> needed = TRY(needed_by(listing.ids), doing);
  TRY(remove_checkpoint(id, needed), doing);
  return Ok{};
}

Epoch CheckpointDir::Listing::highest_epoch() const {
  return std::max(fence.value_or(0), ids.empty() ? 0 : ids.front().epoch);
}

Result<CheckpointDir::Listing> CheckpointDir::list() {
  Result<std::vector<std::string>> names = files_.list(path_);
  Listing listing;
  if (!names && names.error().code() == Code::NotFound) return listing;
  for (std::string& name : TRY(std::move(names), "list " + path_)) {
    if (const auto id = parse_checkpoint_name(name)) {
      listing.ids.push_back(*id);
    } else if (name.starts_with("fence-")) {
      if (const auto epoch = parse_fence_name(name)) listing.fence = std::max(listing.fence.value_or(0), *epoch);
      listing.fence_files.push_back(std::move(name));
    } else {
      listing.foreign.push_back(std::move(name));
    }
  }
  std::sort(listing.ids.begin(), listing.ids.end(), std::greater<>());
  return listing;
}

/// Asks for the names rather than for the manifest: an unreadable directory must not pass for an uncommitted one.
Result<bool> CheckpointDir::committed(CheckpointId id) {
  const std::vector<std::string> names = TRY(files_.list(checkpoint_path(id)), checkpoint_name(id));
  return std::find(names.begin(), names.end(), kManifestFile) != names.end();
}

std::vector<CheckpointId> CheckpointDir::all_committed(const Listing& listing) {
  std::vector<CheckpointId> all;
  for (const CheckpointId id : listing.ids) {
    const Result<bool> is_committed = committed(id);
    if (is_committed && *is_committed) all.push_back(id);
  }
  return all;
}

Result<Manifest> CheckpointDir::verify(CheckpointId id) {
  if (!TRY(committed(id), "look for the manifest")) {
    return Error(Code::NotFound, "it has no manifest: it was never committed");
  }
  return verify_checkpoint(files_, checkpoint_path(id), files_.threads());
}

Status CheckpointDir::check_shards(const Manifest& manifest, const std::string& dir) {
  for (const ShardRecord& shard : manifest.shards) {
    const auto file = TRY(files_.open(dir + "/" + shard.file), "look for " + shard.file);
    if (file->size() != shard.bytes) {
      return Error(Code::Corrupt, shard.file + " has " + std::to_string(file->size()) + " bytes, its writer reported " +
                                      std::to_string(shard.bytes));
    }
  }
  return Ok{};
}

Result<bool> CheckpointDir::already_committed(CheckpointId id, const std::string& text) {
  if (!TRY(committed(id), "look for a manifest")) return false;
  const std::string path = checkpoint_path(id) + "/" + kManifestFile;
  const Bytes there = TRY(world::read_file(files_, path, kManifestBytesMax), "read the manifest that is there");
  if (as_text(there) != text) return Error(Code::Conflict, "it is committed already, with other content");
  TRY(files_.sync_dir(checkpoint_path(id)), "sync");
  return true;
}

/// Files of older checkpoints that these need. One without a manifest, or a whole one, needs none: it never loads.
Result<std::set<std::string>> CheckpointDir::needed_by(const std::vector<CheckpointId>& ids) {
  std::set<std::string> needed;
  for (const CheckpointId id : ids) {
    const Result<Manifest> manifest = read_manifest(files_, checkpoint_path(id));
    // What can't be read today may be needed tomorrow.
    if (!manifest && manifest.error().code() == Code::Unavailable) return manifest.error();
    if (!manifest) continue;
    for (const KeptFile& kept : kept_files(*manifest)) needed.insert(kept.checkpoint + "/" + kept.file);
  }
  return needed;
}

/// Whether it is as it was written: every byte is read back, but where the place compared them itself.
Result<Manifest> CheckpointDir::confirm(CheckpointId id) {
  if (!files_.checks_writes(path_)) return verify(id);
  const OpenCheckpoint open = TRY(OpenCheckpoint::open(files_, checkpoint_path(id)), "look at what was written");
  return open.manifest();
}

/// The newest `keep` that verify stay; whatever is older goes. Newer ones that do not verify stay for people to look
/// at.
Result<RetentionReport> CheckpointDir::retain(bool act) {
  const Listing listing = TRY(list(), "retention");
  const std::vector<CheckpointId> all = all_committed(listing);
  RetentionReport report;
  std::vector<CheckpointId> given_up;
  std::size_t verified = 0;
  for (const CheckpointId id : all) {
    if (verified == policy_.keep) {
      given_up.push_back(id);
      continue;
    }
    // Reading back is only worth it where something could be removed on the strength of it.
    if (all.size() <= policy_.keep) continue;
    if (!verified_.contains(id)) {
      const Result<Manifest> manifest = confirm(id);
      if (!manifest) {
        report.damaged.push_back(passed_over(id, manifest.error()));
        continue;
      }
      verified_.insert(id);
    }
    ++verified;
  }
  if (act) {
    const Status removed = remove_all(listing, given_up, report.removed);
    if (!removed) report.trouble = removed.error().message();
  } else {
    for (const CheckpointId id : given_up) report.removed.push_back(checkpoint_name(id));
  }
  return report;
}

Status CheckpointDir::remove_all(const Listing& listing, const std::vector<CheckpointId>& given_up,
                                 std::vector<std::string>& removed) {
  std::vector<CheckpointId> others = listing.ids;
  std::erase_if(others, [&](CheckpointId id) { return std::ranges::find(given_up, id) != given_up.end(); });
  const std::set<std::string> needed = TRY(needed_by(others), "retention");
  for (const CheckpointId id : given_up) {
    verified_.erase(id);
    TRY(remove_checkpoint(id, needed), "remove " + checkpoint_name(id));
    removed.push_back(checkpoint_name(id));
  }
  TRY(remove_partial(), "retention");
  return Ok{};
}

/// All of it but what is `needed`. Whether anything went.
Result<bool> CheckpointDir::remove_checkpoint(CheckpointId id, const std::set<std::string>& needed) {
  const std::string dir = checkpoint_path(id);
  const std::vector<std::string> names = TRY(files_.list(dir), "list " + dir);
  // The manifest goes first and for good: what is left of the shards must never look like a checkpoint.
  if (std::find(names.begin(), names.end(), kManifestFile) != names.end()) {
    TRY(files_.remove(dir + "/" + kManifestFile), "remove its manifest");
    TRY(files_.sync_dir(dir), "sync " + dir);
  }
  std::size_t stays = 0;
  for (const std::string& name : names) {
    if (name == kManifestFile) continue;
    std::string file = dir;
    file.append("/").append(name);
    if (!is_ours(name)) return Error(Code::Conflict, file + " is not ours: move it elsewhere");
    if (needed.contains(checkpoint_name(id) + "/" + name)) {
      ++stays;
    } else {
      TRY(files_.remove(file), "remove " + name);
    }
  }
  if (stays == 0) TRY(files_.remove_dir(dir), "remove " + dir);
  TRY(files_.sync_dir(path_), "sync " + path_);
  return stays < names.size();
}

/// Once for each object: the directory and those above it, which somebody may just have made, outlive a crash.
Status CheckpointDir::make_durable_path() {
  if (path_durable_) return Ok{};
  TRY(files_.sync_path(path_), "sync");
  path_durable_ = true;
  return Ok{};
}

}  // namespace holdfast::store
