// Any bytes as the start of a safetensors file: refused, or a header that writing and reading again confirms.
#include "base/check.h"
#include "store/kept.h"
#include "store/safetensors.h"
#include "store/slices.h"

namespace {

using holdfast::BytesView;

/// Without what the writer refuses though the reader takes it: a NUL in a name.
bool writable(const holdfast::store::SafetensorsHeader& header) {
  for (const auto& tensor : header.tensors) {
    if (tensor.name.empty() || tensor.name.find('\0') != std::string::npos) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 8) return 0;
  // The first 8 bytes claim the size of the file, so that the input need not hold the tensors' bytes.
  std::uint64_t file_size = 0;
  std::memcpy(&file_size, data, sizeof file_size);
  const BytesView prefix = std::as_bytes(std::span(data + 8, size - 8));
  const auto header = holdfast::store::parse_safetensors_header(prefix, file_size);
  if (!header) return 0;
  CHECK(header->data_begin <= prefix.size());
  CHECK(header->file_bytes() == file_size);
  // What checkpoints read of the metadata: refused, or the same when written again.
  if (const auto kept = holdfast::store::kept_names_of(*header)) {
    auto other = *header;
    other.metadata[holdfast::store::kKeptKey] = *holdfast::store::format_kept(*kept);
    CHECK(*holdfast::store::kept_names_of(other) == *kept);
  }
  if (const auto digests = holdfast::store::digests_of(*header)) {
    auto other = *header;
    other.metadata[holdfast::store::kDigestsKey] = holdfast::store::format_digests(*digests);
    CHECK(*holdfast::store::digests_of(other) == *digests);
  }
  (void)holdfast::store::slices_of(*header);
  if (!writable(*header)) return 0;
  const auto laid_out = holdfast::store::lay_out_tensors(header->tensors, header->metadata);
  CHECK(laid_out);
  CHECK(laid_out->data_bytes() == header->data_bytes());
  const auto bytes = holdfast::store::format_safetensors_header(*laid_out);
  CHECK(bytes);
  const auto again = holdfast::store::parse_safetensors_header(*bytes, laid_out->file_bytes());
  CHECK(again);
  CHECK(again->metadata == header->metadata);
  CHECK(again->tensors.size() == header->tensors.size());
  return 0;
}
