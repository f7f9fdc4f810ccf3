#include "store/row_parts.h"

#include <algorithm>

#include "store/dtype.h"

namespace holdfast::store {
namespace {

void add_runs(const TensorData& tensor, const Slice& place, std::uint64_t rows_each, RowParts& parts) {
  const std::uint64_t rows = tensor.shape.front();
  const std::uint64_t row_bytes = tensor.bytes.size() / rows;
  for (std::uint64_t first = 0; first < rows; first += rows_each) {
    TensorData part = tensor;
    part.shape.front() = std::min(rows_each, rows - first);
    part.bytes = tensor.bytes.subspan(first * row_bytes, part.shape.front() * row_bytes);
    Slice slice = place;
    slice.begin.front() += first;
    part.name = slice_name(slice.of, slice.begin);
    parts.slices.emplace(part.name, std::move(slice));
    parts.tensors.push_back(std::move(part));
  }
}

}  // namespace

Result<RowParts> cut_rows(std::span<const TensorData> tensors, const Slices& slices, std::uint64_t bytes_max) {
  RowParts parts;
  for (const TensorData& tensor : tensors) {
    const std::uint64_t bytes = TRY(tensor_bytes(tensor.dtype, tensor.shape), tensor.name);
    if (bytes != tensor.bytes.size()) return Error(Code::BadInput, tensor.name + ": bytes that do not fit its shape");
    const auto slice = slices.find(tensor.name);
    // Rows that end within a byte, of packed elements, can't be cut apart.
    const bool cut =
        bytes > bytes_max && !tensor.shape.empty() && tensor.shape.front() > 1 && bytes % tensor.shape.front() == 0;
    if (!cut) {
      parts.tensors.push_back(tensor);
      if (slice != slices.end()) parts.slices.insert(*slice);
      continue;
    }
    const std::uint64_t rows = std::max<std::uint64_t>(1, bytes_max / (bytes / tensor.shape.front()));
    const Slice whole{tensor.name, tensor.shape, std::vector<std::uint64_t>(tensor.shape.size(), 0)};
    add_runs(tensor, slice != slices.end() ? slice->second : whole, rows, parts);
  }
  return parts;
}

}  // namespace holdfast::store
