// Any bytes as a pickle: refused, or values that can be looked at and that name nothing but what was allowed.
#include "base/check.h"
#include "store/dcp_metadata.h"
#include "store/pickle.h"
#include "store/torch_tensor.h"

namespace {

using holdfast::store::Pickle;
using holdfast::store::PickleValue;

/// Visits at most `left` values; a value may hold itself.
void look(const Pickle& pickle, const PickleValue& value, int depth, int& left) {
  if (depth == 0 || --left < 0) return;
  (void)pickle.text(value);
  (void)pickle.called(value);
  CHECK(pickle.global(value).empty() || holdfast::store::is_torch_global(pickle.global(value)));
  (void)holdfast::store::torch_counts(pickle, value);
  if (const auto tensor = holdfast::store::torch_tensor(pickle, value); tensor && *tensor && !(*tensor)->meta) {
    CHECK((*tensor)->end() <= (*tensor)->storage_bytes);
    CHECK((*tensor)->begin() <= (*tensor)->end());
  }
  for (const PickleValue& item : pickle.items(value)) look(pickle, item, depth - 1, left);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const holdfast::BytesView bytes = std::as_bytes(std::span(data, size));
  const auto pickle =
      holdfast::store::parse_pickle(holdfast::Bytes(bytes.begin(), bytes.end()), holdfast::store::is_torch_global);
  int left = 10'000;
  if (pickle) look(*pickle, pickle->root(), 30, left);
  const auto metadata = holdfast::store::parse_dcp_metadata(holdfast::Bytes(bytes.begin(), bytes.end()));
  if (!metadata) return 0;
  for (const auto& tensor : metadata->tensors) {
    CHECK(tensor.dtype != nullptr && tensor.boxes.size() == tensor.items.size());
    CHECK(holdfast::store::check_cover(tensor.shape, tensor.boxes));
  }
  return 0;
}
