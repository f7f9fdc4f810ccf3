// A file read over HTTP by ranges, from one state of it: one that is changed meanwhile is refused, never mixed.
#pragma once

#include <memory>
#include <string>

#include "world/files.h"
#include "world/http.h"
#include "world/ranges.h"

namespace holdfast::world {

struct RemoteFilePolicy {
  RangePolicy ranges;
  std::uint64_t head_bytes = std::uint64_t{256} << 10U;  ///< fetched on opening, so that reading a header costs no more
};

/// One request: the start of the file, its size, and by what its state is told. `request` is a GET without a Range;
/// `name` is for messages. `client` outlives the file. Errors: NotFound, Denied, Unavailable, BadInput (the server
/// tells no size). Reading: Conflict where the file changed.
Result<std::unique_ptr<ReadableFile>> open_remote_file(HttpClient& client, HttpRequest request, std::string name,
                                                       const RemoteFilePolicy& policy);

}  // namespace holdfast::world
