// The run's secret: made up where everything stays on this machine, the user's where it does not.
#pragma once

#include <string>

#include "base/result.h"
#include "world/net.h"
#include "world/random.h"

namespace holdfast::app {

/// `file`: --secret-file or "". On loopback a fresh random secret unless one is given. Errors: BadInput where `bind` is
/// not loopback and neither a file nor HOLDFAST_SECRET gives one, where the file is readable by others, or the secret
/// is shorter than 16 bytes.
Result<std::string> run_secret(const world::Address& bind, const std::string& file, world::Random& random);

}  // namespace holdfast::app
