#include "store/archive.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "store/json_text.h"
#include "store/shown.h"
#include "world/parallel.h"

namespace holdfast::store {
namespace {

constexpr std::uint64_t kPlaceAlignment = 64;
constexpr std::uint64_t kTimesFile = 4;  // views of the same memory, each loaded by itself
constexpr std::uint64_t kFreeBytes = std::uint64_t{64} << 20U;

std::string in_file(const TensorArchive& archive, const ArchivedTensor& tensor) {
  return archive.path() + ": tensor " + shown(tensor.name);
}

/// Where the tensors named, or all, lie in the archive; each once, with what they are tied to, in the archive's order.
Result<std::vector<std::size_t>> chosen(const TensorArchive& archive,
                                        const std::optional<std::vector<std::string>>& names) {
  const auto tensors = archive.tensors();
  std::unordered_map<std::string_view, std::size_t> by_name;
  for (std::size_t i = 0; i < tensors.size(); ++i) by_name.emplace(tensors[i].name, i);
  std::vector<bool> wanted(tensors.size(), !names.has_value());
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
      const auto others = archive.others();
      const bool other = std::find(others.begin(), others.end(), name) != others.end();
      return Error(Code::BadInput, archive.path() + (other ? ": what it calls " + shown(name) + " is no tensor"
                                                           : ": holds no tensor " + shown(name)));
    }
    wanted[found->second] = true;
    if (const std::string& first = tensors[found->second].tied_to; !first.empty()) wanted[by_name.at(first)] = true;
  }
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) indices.push_back(i);
  }
  return indices;
}

}  // namespace

Status TensorArchive::read(std::size_t index, std::span<std::byte> out) {
  const ArchivedTensor& tensor = tensors_.at(index);
  if (!tensor.unreadable.empty()) return Error(Code::BadInput, in_file(*this, tensor) + ": " + tensor.unreadable);
  CHECK(out.size() == tensor.bytes);
  TRY(read_elements(index, out), in_file(*this, tensor));
  return Ok{};
}

Status TensorArchive::check_tensors() const {
  std::unordered_set<std::string_view> names;
  for (const ArchivedTensor& tensor : tensors_) {
    if (tensor.name.size() > kTensorNameBytesMax) {
      return Error(Code::BadInput, "a tensor's name has " + std::to_string(tensor.name.size()) + " bytes, at most " +
                                       std::to_string(kTensorNameBytesMax) + " are allowed: " + shown(tensor.name));
    }
    if (!json_quote(tensor.name)) {
      return Error(Code::BadInput, "the tensor name " + shown(tensor.name) + " is not UTF-8");
    }
    if (!names.insert(tensor.name).second) {
      return Error(Code::BadInput, "two tensors are called " + shown(tensor.name));
    }
  }
  return Ok{};
}

Status check_memory(const TensorArchive& archive, std::span<const std::size_t> indices) {
  const std::uint64_t limit = kTimesFile * archive.file_bytes() + kFreeBytes;
  std::uint64_t total = 0;
  for (const std::size_t i : indices) {
    const ArchivedTensor& tensor = archive.tensors()[i];
    if (!tensor.unreadable.empty()) return Error(Code::BadInput, in_file(archive, tensor) + ": " + tensor.unreadable);
    if (!tensor.tied_to.empty()) continue;
    if (__builtin_add_overflow(total, tensor.bytes, &total) || total > limit) {
      return Error(Code::BadInput, in_file(archive, tensor) + ": the tensors up to here take more than " +
                                       std::to_string(limit) + " bytes, but the file has only " +
                                       std::to_string(archive.file_bytes()) + "; load fewer of them by name");
    }
  }
  return Ok{};
}

Result<LoadedArchive> load_archive(TensorArchive& archive, const std::optional<std::vector<std::string>>& names,
                                   unsigned threads) {
  const std::vector<std::size_t> indices = TRY(chosen(archive, names), "load");
  TRY(check_memory(archive, indices), "load");
  std::vector<TensorInfo> tensors;
  std::vector<std::size_t> sources;
  std::map<std::string, std::string> tied;
  std::uint64_t next = 0;
  for (const std::size_t i : indices) {
    const ArchivedTensor& each = archive.tensors()[i];
    if (!each.tied_to.empty()) {
      tied.emplace(each.name, each.tied_to);
      continue;
    }
    tensors.push_back({each.name, each.dtype, each.shape, next, next + each.bytes});
    sources.push_back(i);
    next = (next + each.bytes + kPlaceAlignment - 1) / kPlaceAlignment * kPlaceAlignment;
  }
  AlignedBytes block(next);
  const auto place = [&](const TensorInfo& tensor) {
    return block.all().subspan(tensor.begin, tensor.end - tensor.begin);
  };
  TRY(world::parallel_try(threads, sources.size(),
                          [&](std::size_t i) { return archive.read(sources[i], place(tensors[i])); }),
      "load");
  return LoadedArchive{std::move(tensors), std::move(tied), std::move(block)};
}

Status verify_archive(TensorArchive& archive, unsigned threads) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < archive.tensors().size(); ++i) {
    const ArchivedTensor& each = archive.tensors()[i];
    if (each.tied_to.empty() && each.unreadable.empty()) indices.push_back(i);
  }
  TRY(check_memory(archive, indices), "verify");
  TRY(world::parallel_try(threads, indices.size(),
                          [&](std::size_t i) {
                            AlignedBytes memory(archive.tensors()[indices[i]].bytes);
                            return archive.read(indices[i], memory.all());
                          }),
      "verify");
  return Ok{};
}

}  // namespace holdfast::store
