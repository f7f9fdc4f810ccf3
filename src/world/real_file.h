// Reading a POSIX file: by copies out of the page cache where it is there, past the cache where it is not.
#pragma once

#include <memory>
#include <string>

#include "world/files.h"

namespace holdfast::world {

/// Errors: NotFound, Denied, Unavailable; Internal for what is no regular file.
Result<std::unique_ptr<ReadableFile>> open_real_file(const std::string& path);

}  // namespace holdfast::world
