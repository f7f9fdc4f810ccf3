// A CoreWeave tensorizer file, every hash of what is read compared.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "store/archive.h"
#include "store/tensorizer_header.h"

namespace holdfast::store {

/// `secret`: see TensorizerKeys. Tensors of nested state dicts are called by their path, joined by dots. One that was
/// saved without elements (version 4) is zeros. Errors: BadInput, Unavailable.
Result<std::unique_ptr<TensorArchive>> open_tensorizer_file(std::unique_ptr<world::ReadableFile> file,
                                                            const std::string& path,
                                                            const std::optional<std::string>& secret);

}  // namespace holdfast::store
