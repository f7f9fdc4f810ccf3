#include "store/slices.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "store/dtype.h"

namespace holdfast::store {
namespace {

using nlohmann::json;

Error wrong(const std::string& name, const std::string& what) {
  return {Code::BadInput, std::string("metadata ") + kSlicesKey + ": " + name + ": " + what};
}

Result<std::vector<std::uint64_t>> numbers(const std::string& name, const json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_array() || found->size() > kDimensionsMax) {
    return wrong(name, std::string(key) + " must be a list of at most " + std::to_string(kDimensionsMax) + " counts");
  }
  std::vector<std::uint64_t> values;
  for (const json& each : *found) {
    if (!each.is_number_unsigned()) return wrong(name, std::string(key) + " must hold counts");
    values.push_back(each.get<std::uint64_t>());
  }
  return values;
}

Result<Slice> slice_from(const TensorInfo& tensor, const json& entry) {
  const std::string& name = tensor.name;
  if (!entry.is_object() || entry.size() != 3) return wrong(name, "must be an object of three keys");
  const auto of = entry.find("of");
  if (of == entry.end() || !of->is_string()) return wrong(name, "of must be the name of the whole tensor");
  // One at a time: a return from within braces would leak what they already hold.
  Slice slice;
  slice.of = of->get<std::string>();
  slice.shape = TRY(numbers(name, entry, "shape"), "read");
  slice.begin = TRY(numbers(name, entry, "begin"), "read");
  if (slice.shape.size() != tensor.shape.size() || slice.begin.size() != tensor.shape.size()) {
    return wrong(name, "has other dimensions than the tensor");
  }
  for (std::size_t i = 0; i < slice.shape.size(); ++i) {
    if (slice.begin[i] > slice.shape[i] || tensor.shape[i] > slice.shape[i] - slice.begin[i]) {
      return wrong(name, "does not lie within a tensor of shape " + shape_text(slice.shape));
    }
  }
  // The size of the whole is computed with later on.
  TRY(tensor_bytes(tensor.dtype, slice.shape), std::string("metadata ") + kSlicesKey + ": " + name);
  return slice;
}

}  // namespace

std::optional<Box> intersection(const Box& a, const Box& b) {
  Box shared;
  for (std::size_t i = 0; i < a.begin.size(); ++i) {
    const std::uint64_t begin = std::max(a.begin[i], b.begin[i]);
    const std::uint64_t end = std::min(a.begin[i] + a.shape[i], b.begin[i] + b.shape[i]);
    if (begin >= end) return std::nullopt;
    shared.begin.push_back(begin);
    shared.shape.push_back(end - begin);
  }
  return shared;
}

std::uint64_t element_count(const std::vector<std::uint64_t>& shape) {
  if (std::find(shape.begin(), shape.end(), 0U) != shape.end()) return 0;
  std::uint64_t count = 1;
  for (const std::uint64_t size : shape) {
    if (__builtin_mul_overflow(count, size, &count)) return UINT64_MAX;
  }
  return count;
}

std::string slice_name(const std::string& of, const std::vector<std::uint64_t>& begin) {
  std::string name = of + '[';
  for (std::size_t i = 0; i < begin.size(); ++i) name += (i > 0 ? "," : "") + std::to_string(begin[i]);
  return name + ']';
}

Result<std::string> format_slices(const Slices& slices) {
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  for (const auto& [name, slice] : slices) {
    all[name] = {{"of", slice.of}, {"shape", slice.shape}, {"begin", slice.begin}};
  }
  try {
    return all.dump();
  } catch (const json::exception&) {
    return Error(Code::BadInput, "the name of a tensor is not UTF-8");
  }
}

Result<Slices> slices_of(const SafetensorsHeader& header) {
  Slices slices;
  const auto text = header.metadata.find(kSlicesKey);
  if (text == header.metadata.end()) return slices;
  bool too_deep = false;
  const auto bounded = [&too_deep](int depth, json::parse_event_t, json&) {
    too_deep = too_deep || depth > 4;
    return !too_deep;
  };
  const json all = json::parse(text->second, bounded, /*allow_exceptions=*/false);
  if (too_deep || !all.is_object()) {
    return Error(Code::BadInput, std::string("metadata ") + kSlicesKey + " is no table of slices");
  }
  std::map<std::string_view, const TensorInfo*> held;
  for (const TensorInfo& tensor : header.tensors) held[tensor.name] = &tensor;
  for (const auto& [name, entry] : all.items()) {
    const auto tensor = held.find(name);
    if (tensor == held.end()) return wrong(name, "the file holds no such tensor");
    slices.emplace(name, TRY(slice_from(*tensor->second, entry), "slices"));
  }
  return slices;
}

}  // namespace holdfast::store
