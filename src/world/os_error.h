// Failed system calls as errors that a caller can act on.
#pragma once

#include <string>

#include "base/result.h"

namespace holdfast::world {

/// "`what`: No space left on device". A full disk, an I/O error and a lack of descriptors or memory are Unavailable.
Error os_error(int number, const std::string& what);

}  // namespace holdfast::world
