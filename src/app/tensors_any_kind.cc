#include "app/tensors_any_kind.h"

#include "store/aliases.h"
#include "store/archive.h"
#include "world/parallel.h"

namespace holdfast::app {

Result<store::TensorFile> read_any_kind(world::Disk& disk, const std::string& path, bool verify) {
  const Result<std::string> kind = store::archive_kind(disk, path);
  if (!kind || *kind == store::kSafetensorsKind) {
    return verify ? store::verify_tensor_file(disk, path, world::usable_cpus()) : store::read_tensor_file(disk, path);
  }
  auto archive = store::open_archive(disk, path, std::nullopt);
  if (!archive) return std::move(archive).error();
  if (verify) {
    if (Status good = store::verify_archive(**archive, world::usable_cpus()); !good) return std::move(good).error();
  }
  store::TensorFile file;
  file.header.metadata = (*archive)->metadata();
  store::Aliases tied;
  std::uint64_t next = 0;
  for (const store::ArchivedTensor& each : (*archive)->tensors()) {
    if (!each.tied_to.empty()) {
      tied.emplace(each.name, each.tied_to);
      continue;
    }
    file.header.tensors.push_back({each.name, each.dtype, each.shape, next, next + each.bytes});
    next += each.bytes;
  }
  if (!tied.empty()) file.header.metadata[store::kAliasesKey] = TRY(store::format_aliases(tied), "second names");
  if ((*archive)->has_checksums()) file.checksums.emplace();
  return file;
}

}  // namespace holdfast::app
