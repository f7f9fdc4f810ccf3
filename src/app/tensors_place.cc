// Where the commands of `holdfast tensors` find files.
#include <unistd.h>

#include <filesystem>

#include "app/tensors_commands.h"
#include "app/text_table.h"
#include "base/log.h"
#include "run/coordinator.h"
#include "world/parallel.h"
#include "world/real_world.h"

namespace holdfast::app {

TensorsPlace::TensorsPlace()
    : world_(world::make_real_world()), progress_(world_->clock()), counted_(world_->disk(), progress_) {}

std::string TensorsPlace::named(const std::string& given) {
  std::string path = std::filesystem::absolute(given).string();
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

store::ModelPlace TensorsPlace::target() { return store::ModelPlace(world_->disk()); }

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
