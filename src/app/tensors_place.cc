// Where the commands of `holdfast tensors` find files.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "app/tensors_commands.h"
#include "app/text_table.h"
#include "base/log.h"
#include "run/coordinator.h"
#include "world/parallel.h"
#include "world/real_world.h"

namespace holdfast::app {

namespace {

Result<world::RemoteSettings> settings() {
  return world::remote_settings([](const char* name) { return std::getenv(name); });
}

}  // namespace

UsualFiles::UsualFiles(world::World& world)
    : settings_(settings()),
      locations_(world.disk(), world.random(), settings_ ? *settings_ : world::RemoteSettings{}) {}

Result<std::unique_ptr<world::ReadableFile>> UsualFiles::open(const std::string& name) {
  if (!settings_ && world::is_remote(name)) return settings_.error();
  auto file = locations_.open(name);
  if (!file) return Error(file.error().code(), world::without_secrets(file.error().message(), name));
  return file;
}

std::uint64_t UsualFiles::piece_bytes(const std::string& name, std::uint64_t total) const {
  return locations_.piece_bytes(name, total);
}

Result<std::unique_ptr<world::NewFile>> UsualFiles::begin(const std::string& name, const std::string& aside,
                                                          const world::Pieces& pieces) {
  if (!settings_ && world::is_remote(name)) return settings_.error();
  return locations_.begin(name, aside, pieces);
}

TensorsPlace::TensorsPlace()
    : world_(world::make_real_world()), files_(*world_), progress_(world_->clock()), counted_(files_, progress_) {}

std::string TensorsPlace::named(const std::string& given) {
  std::string path = world::is_remote(given) ? given : std::filesystem::absolute(given).string();
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

store::ModelPlace TensorsPlace::target(const std::string& name) {
  return world::is_remote(name) ? store::ModelPlace(files_, files_) : store::ModelPlace(world_->disk());
}

unsigned TensorsPlace::threads() const { return world::usable_cpus(); }

std::string TensorsPlace::aside() { return ".partial-" + std::to_string(::getpid()); }

int ended_by(const Error& error) {
  log_error(printable(error.message()));
  const bool failed = error.code() == Code::Unavailable || error.code() == Code::Internal;
  return failed ? run::kExitFailed : run::kExitUsage;
}

std::string checksums_text(const store::Model& model) {
  return model.has_checksums() ? "with checksums" : "without checksums";
}

std::string total_text(const store::Model& model) {
  const std::size_t count = model.tensors().size();
  const std::string files = model.index_path().empty() ? "" : " in " + std::to_string(model.files().size()) + " files";
  return std::to_string(count) + (count == 1 ? " tensor" : " tensors") + files + ", " + size_text(model.data_bytes());
}

}  // namespace holdfast::app
