// Tensors that lie in parts in several files: which parts there are, and which bytes of them a wanted box is. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/safetensors.h"
#include "store/slices.h"

namespace holdfast::store {

/// Where the elements of a box lie, row-major.
struct TensorPart {
  std::size_t file = 0;
  std::uint64_t begin = 0;  ///< byte in that file's data buffer
  Box box;
};

struct WholeTensor {
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::vector<TensorPart> parts;  ///< no box twice: of replicas the first counts
};

using WholeTensors = std::map<std::string, WholeTensor>;

/// Bytes of a file that belong at a place of the wanted box's row-major bytes.
struct PartRun {
  std::size_t file = 0;
  std::uint64_t from = 0;  ///< byte in that file's data buffer
  std::uint64_t to = 0;    ///< byte of the box
  std::uint64_t bytes = 0;
};

/// A file as far as it counts.
struct PartsFile {
  const SafetensorsHeader* header = nullptr;
  const std::set<std::string>* names = nullptr;  ///< the tensors that count; null: all
};

/// All tensors of these files; of equal parts that of the earliest file counts. Errors: BadInput (wrong slices; parts
/// of one name that differ in dtype or whole shape).
Result<WholeTensors> gather_parts(std::span<const PartsFile> files);

/// Every element of `wanted` once. Errors: BadInput (another number of dimensions, beyond the tensor, elements that no
/// part holds or two do, packed elements cut within a byte).
Result<std::vector<PartRun>> plan_read(const WholeTensor& tensor, const Box& wanted);

}  // namespace holdfast::store
