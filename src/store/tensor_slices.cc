#include "store/tensor_slices.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "store/data_reader.h"
#include "store/dtype.h"
#include "store/placed_tensors.h"
#include "store/tensor_parts.h"

namespace holdfast::store {
namespace {

Box whole_box(const std::vector<std::uint64_t>& shape) { return {std::vector<std::uint64_t>(shape.size(), 0), shape}; }

/// By name as asked for, which may be no one twice.
Result<std::vector<TensorInfo>> as_asked(const SafetensorsHeader& header, const std::vector<std::string>& names) {
  std::map<std::string_view, const TensorInfo*> found;
  const std::vector<TensorInfo> chosen = TRY(tensors_named(header, names), "load");
  if (chosen.size() != names.size()) return Error(Code::BadInput, "a tensor is asked for twice");
  for (const TensorInfo& tensor : chosen) found.emplace(tensor.name, &tensor);
  std::vector<TensorInfo> asked;
  for (const std::string& name : names) asked.push_back(*found.at(name));
  return asked;
}

/// Ranges that lie one behind the other, in the file and in memory, as one: the fewer are read the better.
void append(std::vector<DataRange>& ranges, const DataRange& next) {
  if (!ranges.empty()) {
    DataRange& last = ranges.back();
    if (last.begin + last.out.size() == next.begin && last.out.data() + last.out.size() == next.out.data()) {
      last.out = {last.out.data(), last.out.size() + next.out.size()};
      return;
    }
  }
  ranges.push_back(next);
}

struct Wanted {
  std::vector<DataRange> ranges;
  std::uint64_t bytes = 0;
};

/// Where the bytes of a box of `stored` are.
Result<Wanted> bytes_of(const TensorInfo& stored, const Box& box, std::byte* out) {
  const WholeTensor whole{stored.dtype, stored.shape, {{0, stored.begin, whole_box(stored.shape)}}};
  Wanted wanted;
  for (const PartRun& run : TRY(plan_read(whole, box), "tensor " + stored.name)) {
    append(wanted.ranges, {run.from, {out + run.to, run.bytes}});
    wanted.bytes += run.bytes;
  }
  return wanted;
}

/// Places for the slices in memory. Errors: BadInput (larger than their tensors).
Result<std::vector<TensorInfo>> placed(const SafetensorsHeader& header, const std::vector<TensorInfo>& stored,
                                       const std::vector<TensorSlice>& slices) {
  std::vector<TensorInfo> tensors = stored;
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    TensorInfo& tensor = tensors[i];
    tensor.shape = slices[i].box.shape;
    const std::uint64_t size = TRY(tensor_bytes(tensor.dtype, tensor.shape), "tensor " + tensor.name);
    if (size > stored[i].end - stored[i].begin) {
      return Error(Code::BadInput, "tensor " + tensor.name + ": the slice is larger than the tensor");
    }
    tensor.begin = place_for(next, size, header.data_begin + stored[i].begin);
    tensor.end = next = tensor.begin + size;
  }
  return tensors;
}

Result<LoadedTensors> read_slices(const OpenTensorFile& file, const std::vector<TensorSlice>& slices,
                                  const ReadPolicy& policy) {
  std::vector<std::string> names;
  for (const TensorSlice& slice : slices) names.push_back(slice.name);
  const SafetensorsHeader& header = file.about().header;
  const std::vector<TensorInfo> stored = TRY(as_asked(header, names), file.path());
  std::vector<TensorInfo> tensors = TRY(placed(header, stored, slices), file.path());
  AlignedBytes block(tensors.empty() ? 0 : tensors.back().end);
  for (std::size_t i = 0; i < stored.size(); ++i) {
    std::byte* const out = block.all().data() + tensors[i].begin;
    Wanted wanted = TRY(bytes_of(stored[i], slices[i].box, out), file.path());
    if (auto read = file.read_exactly(wanted.ranges, policy.threads); !read) return std::move(read).error();
    if (policy.done != nullptr) *policy.done += wanted.bytes;
  }
  return LoadedTensors{file.about(), std::move(tensors), std::move(block)};
}

Result<TensorFile> read_into(world::ReadableFile& file, const std::vector<TensorPlacement>& places,
                             const ReadPolicy& policy) {
  TensorFile head = TRY(read_tensor_head(file), "header");
  std::vector<std::string> names;
  for (const TensorPlacement& place : places) names.push_back(place.name);
  const std::vector<TensorInfo> stored = TRY(as_asked(head.header, names), "load");
  std::vector<Span> spans;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const TensorPlacement& place = places[i];
    if (place.dtype != stored[i].dtype || place.shape != stored[i].shape ||
        place.bytes.size() != stored[i].end - stored[i].begin) {
      return Error(Code::BadInput, "tensor " + place.name + " is " + stored[i].dtype + " " +
                                       shape_text(stored[i].shape) + " in the file, and goes into no " + place.dtype +
                                       " " + shape_text(place.shape));
    }
    spans.push_back({stored[i].begin, stored[i].end, place.bytes.data()});
  }
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  TRY(DataReader(file, head, policy).read(spans), "data");
  return head;
}

}  // namespace

Result<LoadedTensors> load_tensor_slices(world::FileSource& files, const std::string& path,
                                         const std::vector<TensorSlice>& slices, const ReadPolicy& policy) {
  auto file = OpenTensorFile::open(files, path);
  if (!file) return std::move(file).error();
  if (!policy.checked) file->trust();
  return read_slices(*file, slices, policy);
}

Result<TensorFile> load_tensors_into(world::FileSource& files, const std::string& path,
                                     const std::vector<TensorPlacement>& places, const ReadPolicy& policy) {
  const std::unique_ptr<world::ReadableFile> file = TRY(files.open(path), "open");
  return TRY(read_into(*file, places, policy), path);
}

}  // namespace holdfast::store
