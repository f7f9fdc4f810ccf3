// Any bytes as a file of torch.save or one of its zip files: refused, or loaded whole and in parts alike, in bounded
// memory.
#include <algorithm>

#include "base/check.h"
#include "one_file.h"
#include "store/archive.h"

namespace {

using holdfast::BytesView;

BytesView bytes_of(const holdfast::store::LoadedArchive& loaded, const std::string& name) {
  const auto found =
      std::find_if(loaded.tensors.begin(), loaded.tensors.end(), [&](const auto& each) { return each.name == name; });
  CHECK(found != loaded.tensors.end());
  return loaded.block.all().subspan(found->begin, found->end - found->begin);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  holdfast::fuzz::OneFile files(std::as_bytes(std::span(data, size)));
  const auto kind = holdfast::store::archive_kind(files, "/f");
  if (!kind || *kind != holdfast::store::kTorchKind) return 0;
  const auto archive = holdfast::store::open_archive(files, "/f", std::nullopt);
  if (!archive) return 0;
  const auto loaded = holdfast::store::load_archive(**archive, std::nullopt, 1);
  if (!loaded) return 0;
  CHECK(loaded->block.all().size() <= 4 * size + (std::size_t{65} << 20U));
  CHECK(loaded->tensors.size() + loaded->tied.size() == (*archive)->tensors().size());
  const auto again = holdfast::store::open_archive(files, "/f", std::nullopt);
  CHECK(again);
  int left = 20;
  for (const auto& tensor : loaded->tensors) {
    if (--left < 0) break;
    const auto alone = holdfast::store::load_archive(**again, {{tensor.name}}, 1);
    CHECK(alone);
    const BytesView here = bytes_of(*loaded, tensor.name);
    const BytesView there = bytes_of(*alone, tensor.name);
    CHECK(std::equal(here.begin(), here.end(), there.begin(), there.end()));
  }
  return 0;
}
