// The file `.metadata` of a folder of torch.distributed.checkpoint: which tensors there are, and where their parts lie.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "store/chunk_cover.h"
#include "store/torch_dtype.h"

namespace holdfast::store {

/// Where an item lies: in a file of the folder, from a byte on.
struct DcpItem {
  std::string file;
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
  bool transformed = false;  ///< by an extension of the writer (compressed, encrypted)
};

struct DcpTensor {
  std::string name;
  const TorchDtype* dtype = nullptr;
  std::vector<std::uint64_t> shape;  ///< in torch's elements
  std::vector<Box> boxes;            ///< they hold every element once; none is empty
  std::vector<DcpItem> items;        ///< of the box with the same index
};

struct DcpMetadata {
  std::vector<DcpTensor> tensors;
  std::vector<std::string> others;  ///< values that are no tensors, by name
};

/// Errors: BadInput, naming the tensor.
Result<DcpMetadata> parse_dcp_metadata(Bytes pickle);

/// Writes one, for torch to read. All dtypes are set, no item is transformed. Each tensor is found under its whole
/// name.
Bytes format_dcp_metadata(const DcpMetadata& metadata);

}  // namespace holdfast::store
