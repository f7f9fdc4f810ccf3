// Any bytes as a tensorizer file, with a key and without: refused, or loaded in bounded memory.
#include "base/check.h"
#include "one_file.h"
#include "store/archive.h"
#include "store/tensorizer_header.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const holdfast::BytesView bytes = std::as_bytes(std::span(data, size));
  holdfast::store::TensorizerEntry entry;
  entry.data_bytes = size;
  (void)holdfast::store::parse_tensorizer_record(bytes, entry, true);
  entry.name = std::string(holdfast::as_text(bytes));
  entry.kind = 2;
  (void)holdfast::store::tensorizer_name(entry);

  holdfast::fuzz::OneFile files(bytes);
  const auto kind = holdfast::store::archive_kind(files, "/f");
  if (!kind || *kind != holdfast::store::kTensorizerKind) return 0;
  // A key of 32 bytes: deriving one would spend whatever time the file asks for.
  for (const auto& secret : {std::optional<std::string>(), std::optional(std::string(32, 'k'))}) {
    const auto archive = holdfast::store::open_archive(files, "/f", secret);
    if (!archive) continue;
    for (const auto& tensor : (*archive)->tensors()) CHECK(tensor.tied_to.empty());
    if (secret) continue;
    const auto loaded = holdfast::store::load_archive(**archive, std::nullopt, 1);
    CHECK(!loaded || loaded->block.all().size() <= 4 * size + (std::size_t{65} << 20U));
  }
  return 0;
}
