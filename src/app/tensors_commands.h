// What the commands of `holdfast tensors` share: where files are, and how an error ends a command.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/progress.h"
#include "store/model.h"
#include "store/model_writer.h"
#include "world/locations.h"
#include "world/world.h"

namespace CLI {
class App;
}

namespace holdfast::app {

/// Files on this machine's disk, and those that a URL names.
class UsualFiles final : public world::FileSource, public world::FileTarget {
 public:
  /// `world` outlives it. Where the environment's settings for URLs are wrong, only URLs are refused.
  explicit UsualFiles(world::World& world);
  Result<std::unique_ptr<world::ReadableFile>> open(const std::string& name) override;
  std::uint64_t piece_bytes(const std::string& name, std::uint64_t total) const override;
  unsigned writes_at_a_time(const std::string& name, unsigned threads) const override {
    return locations_.writes_at_a_time(name, threads);
  }
  Result<std::unique_ptr<world::NewFile>> begin(const std::string& name, const std::string& aside,
                                                const world::Pieces& pieces) override;

 private:
  Result<world::RemoteSettings> settings_;
  world::Locations locations_;
};

/// The files that a command reads and writes, with its progress.
class TensorsPlace {
 public:
  TensorsPlace();
  /// A name as it is given at the command line, as the rest takes it.
  static std::string named(const std::string& given);
  /// Counted by `progress`.
  world::FileSource& source() { return counted_; }
  /// Where a model is to be written under that name.
  store::ModelPlace target(const std::string& name);
  Progress& progress() { return progress_; }
  unsigned threads() const;
  /// What tells this process's unfinished files from those of others.
  static std::string aside();

 private:
  std::unique_ptr<world::World> world_;
  UsualFiles files_;
  Progress progress_;
  CountedFiles counted_;
};

/// Prints the one line, and gives the exit code: 2 where the input is wrong, 1 where the work failed.
int ended_by(const Error& error);

/// "with checksums", "without checksums"; "3 tensors in 2 files, 1.20 MB".
std::string checksums_text(const store::Model& model);
std::string total_text(const store::Model& model);

// Each adds itself below `holdfast tensors`.
void add_tensors_cat(CLI::App& tensors, int& exit_code);
void add_tensors_cp(CLI::App& tensors, int& exit_code);
void add_tensors_diff(CLI::App& tensors, int& exit_code);
void add_tensors_reshard(CLI::App& tensors, int& exit_code);

}  // namespace holdfast::app
