// What a tensor's values are like, and how two tensors differ; read in blocks, so in bounded memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/model.h"

namespace holdfast::store {

/// Of a complex tensor: of its magnitudes.
struct TensorStatistics {
  std::uint64_t elements = 0;
  std::uint64_t nan = 0;
  std::uint64_t infinite = 0;
  std::optional<long double> min, max, mean;  ///< of those that are neither; none where there is no such
  std::vector<std::string> first;             ///< the first values as text
};

/// Errors: as OpenTensorFile::read.
Result<TensorStatistics> measure(const ModelTensor& tensor, std::size_t first_max, unsigned threads);

struct TensorDifference {
  std::uint64_t elements = 0;          ///< in each
  std::uint64_t other = 0;             ///< elements whose bytes differ
  std::uint64_t beyond = 0;            ///< those of them whose values differ by more than the tolerance
  long double absolute_max = 0;        ///< |a - b|; infinite where only one is infinite or NaN
  long double relative_max = 0;        ///< |a - b| / max(|a|, |b|)
  std::optional<std::uint64_t> first;  ///< the first of `beyond`, counted row by row
  bool by_checksums = false;           ///< nothing was read
};

/// How far apart values may be and still count as the same, absolutely or relative to the larger one; 0: any change of
/// bytes counts.
struct DiffPolicy {
  long double tolerance = 0;
  bool trust_checksums = false;  ///< where both files have the same layout and the chunks' checksums match, don't read
};

/// Two tensors of one dtype and shape. Errors: as OpenTensorFile::read.
Result<TensorDifference> compare(const ModelTensor& a, const ModelTensor& b, const DiffPolicy& policy,
                                 unsigned threads);

}  // namespace holdfast::store
