// One whole answer to one request.
#pragma once

#include <cstdint>
#include <string>

#include "world/http.h"

namespace holdfast::world {

struct HttpAnswer {
  HttpHead head;
  Bytes body;
};

/// `what` is for messages. `tries`: how many it took, also where it failed; of several an earlier one may have done its
/// work unseen. Errors: as judge_try (http_judge.h); BadInput (a body above `bytes_max`).
Result<HttpAnswer> http_call(HttpClient& client, HttpRequest request, const std::string& what, std::uint64_t bytes_max,
                             unsigned* tries = nullptr);

}  // namespace holdfast::world
