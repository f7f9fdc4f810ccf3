#include "store/torch_tensor.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "store/dtype.h"
#include "store/safetensors.h"
#include "store/shown.h"

namespace holdfast::store {
namespace {

constexpr int kWrappersMax = 4;
constexpr std::string_view kTorch = "torch ";

// Names that carry no tensor data but stand beside it in state dicts; nothing is done with them.
constexpr std::array kHarmless = std::to_array<std::string_view>({
    "_codecs encode",
    "collections OrderedDict",
    "torch Size",
    "torch Tensor",
    "torch device",
    "torch strided",
    "torch.nn.parameter Buffer",
    "torch.nn.parameter Parameter",
    "torch.serialization _get_layout",
    "torch.storage UntypedStorage",
});
constexpr std::array kRebuilds = std::to_array<std::string_view>({
    "torch._tensor _rebuild_from_type_v2",
    "torch._utils _rebuild_meta_tensor_no_storage",
    "torch._utils _rebuild_parameter",
    "torch._utils _rebuild_parameter_with_state",
    "torch._utils _rebuild_tensor",
    "torch._utils _rebuild_tensor_v2",
    "torch._utils _rebuild_tensor_v3",
});
constexpr std::array kPlainTypes = std::to_array<std::string_view>({
    "torch Tensor",
    "torch.nn.parameter Buffer",
    "torch.nn.parameter Parameter",
});

template <std::size_t N>
bool among(const std::array<std::string_view, N>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

Error bad(const std::string& why) { return {Code::BadInput, why}; }

Result<std::uint64_t> count(const PickleValue& value, const char* what) {
  if (value.kind != PickleKind::Int || Pickle::integer(value) < 0) {
    return bad(std::string(what) + " is no count");
  }
  return static_cast<std::uint64_t>(Pickle::integer(value));
}

std::string_view after(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix ? text.substr(prefix.size()) : std::string_view();
}

/// ('storage', type, key, location, number of elements), under which torch keeps the bytes.
Status read_storage(const Pickle& pickle, const PickleValue& value, TorchTensor& tensor) {
  if (value.kind != PickleKind::Persistent) return bad("its storage is not kept beside the pickle");
  const auto id = pickle.items(pickle.items(value)[0]);
  if (id.size() != 5 || pickle.text(id[0]) != "storage" || id[2].kind != PickleKind::Text ||
      id[3].kind != PickleKind::Text) {
    return bad("its storage is described in an unknown way");
  }
  std::uint64_t element = 1;
  if (pickle.global(id[1]) != "torch.storage UntypedStorage") {
    const TorchDtype* dtype = torch_dtype_of_storage(after(pickle.global(id[1]), kTorch));
    if (dtype == nullptr) return bad("its storage is of an unknown type");
    if (tensor.dtype == nullptr) tensor.dtype = dtype;
    element = dtype->bytes;
  }
  if (tensor.dtype == nullptr) return bad("its storage has no type");
  tensor.storage = pickle.text(id[2]);
  tensor.meta = pickle.text(id[3]) == "meta";
  const std::uint64_t elements = TRY(count(id[4], "the size of its storage"), "storage");
  if (__builtin_mul_overflow(elements, element, &tensor.storage_bytes)) return bad("its storage is beyond 64 bits");
  return Ok{};
}

Status check_shape(const TorchTensor& tensor) {
  std::uint64_t bytes = tensor.dtype->bytes;
  for (const std::uint64_t dimension : tensor.shape) {
    if (__builtin_mul_overflow(bytes, dimension, &bytes)) return bad("its shape is beyond 64 bits");
  }
  return Ok{};
}

/// Every element lies inside the storage.
Status check_place(const TorchTensor& tensor) {
  if (tensor.elements() == 0) return Ok{};
  std::uint64_t last = tensor.offset;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    std::uint64_t step = 0;
    if (__builtin_mul_overflow(tensor.shape[i] - 1, tensor.stride[i], &step) ||
        __builtin_add_overflow(last, step, &last)) {
      return bad("its strides are beyond 64 bits");
    }
  }
  if (last < tensor.storage_bytes / tensor.dtype->bytes) return Ok{};
  return bad("of shape " + shape_text(tensor.shape) + " and strides " + shape_text(tensor.stride) + " from element " +
             std::to_string(tensor.offset) + " on lies outside its storage of " + std::to_string(tensor.storage_bytes) +
             " bytes");
}

Status read_flags(const Pickle& pickle, const PickleValue& value, TorchTensor& tensor) {
  if (value.kind != PickleKind::Dict) return bad("has attributes that are no dict");
  const auto flags = pickle.items(value);
  for (std::size_t i = 0; i + 1 < flags.size(); i += 2) {
    if (flags[i + 1].kind != PickleKind::Bool) return bad("has an unknown attribute");
    const bool set = Pickle::truth(flags[i + 1]);
    const std::string_view name = pickle.text(flags[i]);
    if (name == "conj") {
      tensor.conjugate = set;
    } else if (name == "neg") {
      tensor.negative = set;
    } else {
      return bad("has the unknown attribute " + shown(name));
    }
  }
  const std::string_view dtype = tensor.dtype->name;
  const bool complex = dtype == "C64" || dtype == "C128";
  if (tensor.conjugate && !complex) return bad("of " + std::string(dtype) + " has a conjugate");
  if (tensor.negative && !complex && dtype != "F32" && dtype != "F64") {
    return bad("of " + std::string(dtype) + " is kept as its negative");
  }
  return Ok{};
}

/// (storage, offset, size, stride[, requires_grad, hooks[, dtype][, flags]])
Result<TorchTensor> read_view(const Pickle& pickle, std::span<const PickleValue> arguments, bool typed) {
  TorchTensor tensor;
  const std::size_t flags = typed ? 7 : 6;
  if (arguments.size() < (typed ? 7U : 4U) || arguments.size() > flags + 1) return bad("has too few or many parts");
  if (typed) {
    tensor.dtype = torch_dtype_global(pickle, arguments[6]);
    if (tensor.dtype == nullptr) return bad("is of an unknown type: " + shown(pickle.global(arguments[6])));
  }
  TRY(read_storage(pickle, arguments[0], tensor), "read");
  tensor.offset = TRY(count(arguments[1], "its first element"), "read");
  tensor.shape = TRY(torch_counts(pickle, arguments[2]), "shape");
  tensor.stride = TRY(torch_counts(pickle, arguments[3]), "strides");
  if (tensor.stride.size() != tensor.shape.size()) return bad("has other strides than dimensions");
  TRY(check_shape(tensor), "read");
  TRY(check_place(tensor), "read");
  if (arguments.size() > flags) TRY(read_flags(pickle, arguments[flags], tensor), "read");
  return tensor;
}

Result<TorchTensor> read_meta(const Pickle& pickle, std::span<const PickleValue> arguments) {
  TorchTensor tensor;
  tensor.meta = true;
  if (arguments.size() == 4) tensor.dtype = torch_dtype_global(pickle, arguments[0]);
  if (tensor.dtype == nullptr) return bad("is of an unknown type");
  tensor.shape = TRY(torch_counts(pickle, arguments[1]), "shape");
  tensor.stride.resize(tensor.shape.size());
  TRY(check_shape(tensor), "read");
  return tensor;
}

/// Negates the number of `bytes` bytes at `at`.
void negate(std::byte* at, std::size_t bytes) { at[bytes - 1] ^= std::byte{0x80}; }

void resolve_flags(const TorchTensor& tensor, std::span<std::byte> out) {
  const std::size_t element = tensor.dtype->bytes;
  const bool complex = tensor.dtype->name.front() == 'C';
  const std::size_t part = complex ? element / 2 : element;
  for (std::size_t at = 0; at + element <= out.size(); at += element) {
    if (complex && tensor.conjugate != tensor.negative) negate(&out[at + part], part);
    if (tensor.negative) negate(&out[at], part);
  }
}

/// Copies row by row; a row is the last dimension.
void copy_strided(const TorchTensor& tensor, const std::byte* stored, std::byte* out) {
  const std::size_t element = tensor.dtype->bytes;
  const std::size_t dimensions = tensor.shape.size();
  const std::uint64_t row = tensor.shape.back();
  const std::uint64_t step = tensor.stride.back();
  std::vector<std::uint64_t> index(dimensions, 0);
  for (std::uint64_t rows = tensor.elements() / row; rows > 0; --rows) {
    std::uint64_t from = 0;
    for (std::size_t i = 0; i + 1 < dimensions; ++i) from += index[i] * tensor.stride[i];
    if (step == 1) {
      std::memcpy(out, stored + from * element, row * element);
      out += row * element;
    } else {
      for (std::uint64_t i = 0; i < row; ++i, out += element) {
        std::memcpy(out, stored + (from + i * step) * element, element);
      }
    }
    for (std::size_t i = dimensions - 1; i-- > 0;) {
      if (++index[i] < tensor.shape[i]) break;
      index[i] = 0;
    }
  }
}

}  // namespace

std::uint64_t TorchTensor::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
}

std::vector<std::uint64_t> TorchTensor::counted_shape() const {
  std::vector<std::uint64_t> counted = shape;
  if (!counted.empty()) counted.back() *= dtype->packed;
  return counted;
}

std::uint64_t TorchTensor::begin() const { return elements() == 0 ? 0 : offset * dtype->bytes; }

std::uint64_t TorchTensor::end() const {
  if (elements() == 0) return 0;
  std::uint64_t last = offset;
  for (std::size_t i = 0; i < shape.size(); ++i) last += (shape[i] - 1) * stride[i];
  return (last + 1) * dtype->bytes;
}

bool TorchTensor::contiguous() const {
  std::uint64_t next = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && stride[i] != next) return elements() == 0;
    next *= shape[i];
  }
  return true;
}

bool is_torch_global(std::string_view global) {
  if (among(kHarmless, global) || among(kRebuilds, global)) return true;
  const std::string_view name = after(global, kTorch);
  return torch_dtype(name) != nullptr || torch_dtype_of_storage(name) != nullptr;
}

Result<std::optional<TorchTensor>> torch_tensor(const Pickle& pickle, const PickleValue& value) {
  std::string_view function = pickle.called(value);
  std::span<const PickleValue> arguments = pickle.arguments(value);
  for (int wrappers = 0; among(kRebuilds, function); ++wrappers) {
    if (wrappers > kWrappersMax) return bad("is wrapped too deep");
    const std::string_view name = function.substr(function.find(' ') + 1);
    if (name == "_rebuild_tensor" || name == "_rebuild_tensor_v2" || name == "_rebuild_tensor_v3") {
      return std::optional(TRY(read_view(pickle, arguments, name.back() == '3'), "tensor"));
    }
    if (name == "_rebuild_meta_tensor_no_storage") return std::optional(TRY(read_meta(pickle, arguments), "tensor"));
    if (name == "_rebuild_from_type_v2") {
      if (arguments.size() != 4 || !among(kPlainTypes, pickle.global(arguments[1])) ||
          arguments[2].kind != PickleKind::Tuple) {
        return bad("is of a type of its own");
      }
      function = pickle.global(arguments[0]);
      arguments = pickle.items(arguments[2]);
      if (!among(kRebuilds, function)) return bad("is made in an unknown way");
      continue;
    }
    if (arguments.empty()) return bad("has too few parts");
    function = pickle.called(arguments[0]);  // a parameter: what it wraps
    arguments = pickle.arguments(arguments[0]);
    if (!among(kRebuilds, function)) return bad("is a parameter that holds no tensor");
  }
  return std::optional<TorchTensor>();
}

Result<std::vector<std::uint64_t>> torch_counts(const Pickle& pickle, const PickleValue& value) {
  PickleValue tuple = value;
  if (pickle.called(value) == "torch Size") {
    if (pickle.arguments(value).size() != 1) return bad("a size without its numbers");
    tuple = pickle.arguments(value)[0];
  }
  if (tuple.kind != PickleKind::Tuple && tuple.kind != PickleKind::List) return bad("no list of counts");
  const auto items = pickle.items(tuple);
  if (items.size() > kDimensionsMax) return bad("more than " + std::to_string(kDimensionsMax) + " dimensions");
  std::vector<std::uint64_t> counts;
  for (const PickleValue& each : items) counts.push_back(TRY(count(each, "an entry"), "list of counts"));
  return counts;
}

const TorchDtype* torch_dtype_global(const Pickle& pickle, const PickleValue& value) {
  return torch_dtype(after(pickle.global(value), kTorch));
}

void gather_elements(const TorchTensor& tensor, BytesView stored, std::span<std::byte> out) {
  if (out.empty()) return;
  if (tensor.contiguous()) {
    if (stored.data() != out.data()) std::memcpy(out.data(), stored.data(), out.size());
  } else {
    copy_strided(tensor, stored.data(), out.data());
  }
  if (tensor.conjugate || tensor.negative) resolve_flags(tensor, out);
}

}  // namespace holdfast::store
