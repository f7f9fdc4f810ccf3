// A tensor as a pickle of torch describes it: a view of a storage that lies elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "store/pickle.h"
#include "store/torch_dtype.h"

namespace holdfast::store {

struct TorchTensor {
  const TorchDtype* dtype = nullptr;
  std::vector<std::uint64_t> shape;   ///< in torch's elements, as all counts here
  std::vector<std::uint64_t> stride;  ///< as many as dimensions
  std::uint64_t offset = 0;           ///< of the first element
  std::string storage;                ///< its key
  std::uint64_t storage_bytes = 0;
  bool meta = false;       ///< there is no storage
  bool conjugate = false;  ///< the elements are the conjugates of what is stored
  bool negative = false;   ///< the negatives of it

  friend bool operator==(const TorchTensor&, const TorchTensor&) = default;

  std::uint64_t elements() const;
  std::uint64_t bytes() const { return elements() * dtype->bytes; }
  /// The shape in elements as safetensors counts them.
  std::vector<std::uint64_t> counted_shape() const;
  /// First byte of the storage that it shows, and one past the last.
  std::uint64_t begin() const;
  std::uint64_t end() const;
  /// Whether its elements lie one behind the other, row-major.
  bool contiguous() const;
};

/// Whether a pickle of plain tensors may name it: "module name".
bool is_torch_global(std::string_view global);

/// None where the value is no tensor. Its numbers are checked: it lies inside its storage, and no product overflows.
/// Errors: BadInput.
Result<std::optional<TorchTensor>> torch_tensor(const Pickle& pickle, const PickleValue& value);

/// A torch.Size or a tuple of counts. Errors: BadInput.
Result<std::vector<std::uint64_t>> torch_counts(const Pickle& pickle, const PickleValue& value);

/// The dtype that a global names: "torch float32". None for any other value.
const TorchDtype* torch_dtype_global(const Pickle& pickle, const PickleValue& value);

/// Elements of `tensor` row-major into `out`, from `stored`: the bytes of its storage from begin() to end(), which may
/// be the same memory as `out` where it is contiguous.
void gather_elements(const TorchTensor& tensor, BytesView stored, std::span<std::byte> out);

}  // namespace holdfast::store
