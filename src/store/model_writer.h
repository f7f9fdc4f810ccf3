// Saving a model into a folder: one file, or several and then their index, so that a reader finds the old model or the
// new one at every moment and after every crash.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/aliases.h"
#include "store/shard_plan.h"
#include "store/tensor_file.h"
#include "world/disk.h"

namespace holdfast::store {

/// Where models are kept. The members outlive who uses it.
struct ModelPlace {
  explicit ModelPlace(world::Disk& of) : source(of), target(of), disk(&of) {}
  ModelPlace(world::FileSource& reads, world::FileTarget& writes) : source(reads), target(writes) {}
  world::FileSource& source;
  world::FileTarget& target;
  world::Disk* disk = nullptr;  ///< the same place, where it is one that files can be removed from
};

/// What is to be written.
struct ModelContent {
  std::vector<TensorInfo> tensors;  ///< without places
  Aliases aliases;                  ///< names tied to those
  std::map<std::string, std::string> metadata;
  ShardPlan plan;
};

/// `begin`, then `write` for each file, then `commit`. One writer at a time for a folder. Where it is not committed,
/// the old model stays, and what was written is removed as far as the place still obeys.
class ModelWriter {
 public:
  /// Makes the folder. Names its files as is the custom, model-00001-of-00003.safetensors, or, where the model that is
  /// there has such names, model.2-00001-of-00003.safetensors. Errors: BadInput (an old index that can't be read, a
  /// file in the way that this place can't remove), Unavailable.
  static Result<ModelWriter> begin(const ModelPlace& place, const std::string& folder, ModelContent content,
                                   const std::string& aside = ".partial");
  ModelWriter(ModelWriter&& other) noexcept;
  ModelWriter& operator=(ModelWriter&&) = delete;
  ModelWriter(const ModelWriter&) = delete;
  ModelWriter& operator=(const ModelWriter&) = delete;
  ~ModelWriter();

  std::size_t files() const { return content_.plan.size(); }
  /// By place in the content.
  const std::vector<std::size_t>& tensors(std::size_t file) const { return content_.plan[file]; }
  const std::string& name(std::size_t file) const { return names_[file]; }
  std::vector<TensorInfo> infos(std::size_t file) const;
  /// Errors: as save_tensor_file.
  Status write(std::size_t file, std::span<const TensorData> tensors, unsigned threads);
  /// Errors: as write_tensor_file.
  Status write(std::size_t file, const DataBytes& data, unsigned threads);
  /// After all were written: on Ok the new model outlives a crash, and the old one's files are gone.
  Status commit();

 private:
  ModelWriter(const ModelPlace& place, std::string folder, ModelContent content, std::string aside)
      : place_(place), folder_(std::move(folder)), content_(std::move(content)), aside_(std::move(aside)) {}
  Status check_names() const;
  Status look_around();
  void choose_names();
  bool whole() const { return content_.plan.size() == 1; }
  std::string path(const std::string& name) const;
  Result<std::map<std::string, std::string>> metadata_of(std::size_t file) const;
  Status write_index();
  Status remove(const std::vector<std::string>& names);
  void remove_old();

  ModelPlace place_;
  std::string folder_;
  ModelContent content_;
  std::string aside_;
  std::vector<std::string> names_;
  std::vector<std::string> written_;  ///< to be removed where nothing comes of it
  std::set<std::string> old_shards_;  ///< of the index that was there
  bool old_index_ = false;
  bool old_file_ = false;  ///< a model.safetensors
};

/// Makes `folder` and its parents so that they outlive a crash.
Status make_durable_dirs(world::Disk& disk, const std::string& folder);

}  // namespace holdfast::store
