// What a try at an HTTP exchange means, where the exchange itself knows no better. Pure.
#pragma once

#include <string>

#include "world/http.h"

namespace holdfast::world {

/// Done for a good one. An error names `what` (a place without secrets), the status, and S3's code and words where the
/// body has them: NotFound (404, 410), Denied (401, 403, certificate), Conflict (412), Unavailable, Internal.
HttpVerdict judge_try(const HttpTry& attempt, const std::string& what);

}  // namespace holdfast::world
