// Any bytes as a tensor file: refused in bounded memory, or loaded whole and in parts alike.
#include <algorithm>

#include "base/check.h"
#include "one_file.h"
#include "store/tensor_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  holdfast::fuzz::OneFile disk(std::as_bytes(std::span(data, size)));
  const auto verified = holdfast::store::verify_tensor_file(disk, "/f", 1);
  const auto loaded = holdfast::store::load_tensor_file(disk, "/f", std::nullopt, 1);
  CHECK(static_cast<bool>(verified) == static_cast<bool>(loaded));
  if (!loaded) {
    CHECK(verified.error().message() == loaded.error().message());
    return 0;
  }
  CHECK(loaded->block.all().size() <= size);
  for (const auto& tensor : loaded->tensors) {
    const auto alone = holdfast::store::load_tensor_file(disk, "/f", {{tensor.name}}, 1);
    CHECK(alone && alone->tensors.size() == 1);
    const holdfast::BytesView here = loaded->block.all().subspan(tensor.begin, tensor.end - tensor.begin);
    const holdfast::BytesView there = alone->block.all().first(alone->tensors[0].end);
    CHECK(std::equal(here.begin(), here.end(), there.begin(), there.end()));
  }
  return 0;
}
