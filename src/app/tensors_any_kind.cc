#include "app/tensors_any_kind.h"

#include "store/aliases.h"
#include "store/archive.h"

namespace holdfast::app {

Result<store::TensorFile> read_other_kind(world::FileSource& files, const std::string& path, bool verify,
                                          unsigned threads) {
  auto archive = store::open_archive(files, path, std::nullopt);
  if (!archive) return std::move(archive).error();
  if (verify) {
    if (Status good = store::verify_archive(**archive, threads); !good) return std::move(good).error();
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
