// A folder of torch.distributed.checkpoint: `.metadata`, and files of items that are each a small file of torch.save.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "store/archive.h"
#include "world/files.h"

namespace holdfast::store {

constexpr const char* kDcpMetadataFile = "/.metadata";

/// `metadata` is that file of the folder `path`. Tensors are put together from chunks of any layout. Errors: BadInput
/// (also where an element is kept twice or nowhere), NotFound (a file that is named there), Unavailable.
Result<std::unique_ptr<TensorArchive>> open_dcp_folder(world::FileSource& files, const std::string& path,
                                                       world::ReadableFile& metadata);

/// Writes into the folder `path`, which exists and holds no `.metadata`, what torch.distributed.checkpoint.load takes:
/// first the data, last `.metadata`, each whole or not at all, so that a crash leaves no checkpoint or a whole one.
/// `tied`: second name -> that of a tensor; kept once. Needs as much memory as the largest tensor. Errors: those of
/// `fill`, BadInput (a dtype that torch lacks), Unavailable.
Status write_dcp_folder(world::FileTarget& files, const std::string& path, std::span<const TensorInfo> tensors,
                        const std::map<std::string, std::string>& tied, const FillTensor& fill,
                        const std::string& aside = ".partial");

}  // namespace holdfast::store
