// Any bytes as the index of a model: refused, or files right inside its folder and an index that reads back the same.
#include <algorithm>

#include "base/check.h"
#include "store/aliases.h"
#include "store/sharded_index.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto aliases = holdfast::store::parse_aliases(text); aliases) {
    CHECK(*holdfast::store::parse_aliases(*holdfast::store::format_aliases(*aliases)) == *aliases);
  }
  const auto index = holdfast::store::parse_sharded_index(text);
  if (!index) {
    CHECK(!index.error().message().empty() && index.error().message().size() < 1000);
    return 0;
  }
  for (const std::string& file : index->files()) {
    CHECK(!file.empty() && file != "." && file != ".." &&
          file.find_first_of(std::string("/\\\0", 3)) == std::string::npos);
  }
  const auto again = holdfast::store::format_sharded_index(*index);
  CHECK(again);
  const auto read = holdfast::store::parse_sharded_index(*again);
  CHECK(read && *read == *index);
  return 0;
}
