#include "store/tensor_parts.h"

#include <algorithm>

#include "base/check.h"
#include "store/dtype.h"

namespace holdfast::store {
namespace {

constexpr std::uint32_t kByteBits = 8;

Box whole_box(const std::vector<std::uint64_t>& shape) { return {std::vector<std::uint64_t>(shape.size(), 0), shape}; }

Status add_part(WholeTensors& all, const std::string& name, const std::string& dtype,
                const std::vector<std::uint64_t>& shape, TensorPart part) {
  auto [found, is_new] = all.try_emplace(name, WholeTensor{dtype, shape, {}});
  WholeTensor& tensor = found->second;
  if (tensor.dtype != dtype || tensor.shape != shape) {
    return Error(Code::BadInput, "tensor " + name + " is " + tensor.dtype + " of shape " + shape_text(tensor.shape) +
                                     " in one part and " + dtype + " of shape " + shape_text(shape) + " in another");
  }
  const auto same = [&](const TensorPart& other) { return other.box == part.box; };
  if (is_new || std::none_of(tensor.parts.begin(), tensor.parts.end(), same)) tensor.parts.push_back(std::move(part));
  return Ok{};
}

/// A box in units of whole bytes: packed elements are counted in pairs, wide ones as rows of bytes.
struct ByteBox {
  std::vector<std::uint64_t> begin, shape;
};

Result<ByteBox> in_bytes(const Box& box, std::uint32_t bits) {
  ByteBox bytes{box.begin, box.shape};
  // A scalar has one element and no dimension.
  if (bytes.shape.empty()) {
    bytes.begin.push_back(0);
    bytes.shape.push_back(1);
  }
  std::uint64_t& begin = bytes.begin.back();
  std::uint64_t& size = bytes.shape.back();
  if (begin * bits % kByteBits != 0 || size * bits % kByteBits != 0) {
    return Error(Code::BadInput, "a box begins or ends within a byte: elements of " + std::to_string(bits) +
                                     " bits can only be cut where whole bytes begin");
  }
  begin = begin * bits / kByteBits;
  size = size * bits / kByteBits;
  return bytes;
}

std::uint64_t offset_in(const ByteBox& box, const std::vector<std::uint64_t>& at) {
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < at.size(); ++i) offset = offset * box.shape[i] + (at[i] - box.begin[i]);
  return offset;
}

/// The runs of `shared` between a part and the wanted box. Trailing dimensions that are whole in both make one run.
void add_runs(const TensorPart& part, const ByteBox& from, const ByteBox& to, const ByteBox& shared,
              std::vector<PartRun>& runs) {
  std::size_t inner = shared.shape.size() - 1;
  std::uint64_t length = shared.shape[inner];
  while (inner > 0 && shared.shape[inner] == from.shape[inner] && shared.shape[inner] == to.shape[inner]) {
    length *= shared.shape[--inner];
  }
  std::vector<std::uint64_t> at = shared.begin;
  for (;;) {
    runs.push_back({part.file, part.begin + offset_in(from, at), offset_in(to, at), length});
    std::size_t i = inner;
    for (; i > 0; --i) {
      if (++at[i - 1] < shared.begin[i - 1] + shared.shape[i - 1]) break;
      at[i - 1] = shared.begin[i - 1];
    }
    if (i == 0) return;
  }
}

Status check_wanted(const WholeTensor& tensor, const Box& wanted) {
  if (wanted.begin.size() != tensor.shape.size() || wanted.shape.size() != tensor.shape.size()) {
    return Error(Code::BadInput, "the box has " + std::to_string(wanted.shape.size()) + " dimensions, the tensor " +
                                     std::to_string(tensor.shape.size()));
  }
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    if (wanted.begin[i] > tensor.shape[i] || wanted.shape[i] > tensor.shape[i] - wanted.begin[i]) {
      return Error(Code::BadInput, "the box of shape " + shape_text(wanted.shape) + " at " + shape_text(wanted.begin) +
                                       " does not lie within the tensor's shape " + shape_text(tensor.shape));
    }
  }
  return Ok{};
}

}  // namespace

Result<WholeTensors> gather_parts(std::span<const PartsFile> files) {
  WholeTensors all;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const Slices slices = TRY(slices_of(*files[i].header), "gather");
    for (const TensorInfo& info : files[i].header->tensors) {
      if (files[i].names != nullptr && !files[i].names->contains(info.name)) continue;
      const auto slice = slices.find(info.name);
      if (slice == slices.end()) {
        TRY(add_part(all, info.name, info.dtype, info.shape, {i, info.begin, whole_box(info.shape)}), "gather");
      } else {
        const Slice& about = slice->second;
        TRY(add_part(all, about.of, info.dtype, about.shape, {i, info.begin, {about.begin, info.shape}}), "gather");
      }
    }
  }
  return all;
}

Result<std::vector<PartRun>> plan_read(const WholeTensor& tensor, const Box& wanted) {
  TRY(check_wanted(tensor, wanted), "plan");
  std::vector<PartRun> runs;
  if (element_count(wanted.shape) == 0) return runs;
  const std::optional<std::uint32_t> bits = dtype_bits(tensor.dtype);
  if (!bits) return Error(Code::BadInput, "unknown dtype " + tensor.dtype);
  const ByteBox to = TRY(in_bytes(wanted, *bits), "wanted");
  std::vector<Box> taken;
  std::uint64_t elements = 0;
  for (const TensorPart& part : tensor.parts) {
    const std::optional<Box> shared = intersection(part.box, wanted);
    if (!shared) continue;
    for (const Box& other : taken) {
      if (intersection(*shared, other)) return Error(Code::BadInput, "two parts hold the same elements");
    }
    elements += element_count(shared->shape);
    const ByteBox from = TRY(in_bytes(part.box, *bits), "part");
    const ByteBox both = TRY(in_bytes(*shared, *bits), "part");
    add_runs(part, from, to, both, runs);
    taken.push_back(*shared);
  }
  if (elements != element_count(wanted.shape)) {
    return Error(Code::BadInput, "of " + std::to_string(element_count(wanted.shape)) + " elements only " +
                                     std::to_string(elements) + " are in a file");
  }
  return runs;
}

}  // namespace holdfast::store
