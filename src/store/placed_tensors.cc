#include "store/placed_tensors.h"

#include <algorithm>

namespace holdfast::store {
namespace {

constexpr std::uint64_t kPlaceAlignment = 64;
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kLikeInFileFrom = std::uint64_t{1} << 20U;

}  // namespace

Result<std::vector<TensorInfo>> tensors_named(const SafetensorsHeader& header, const std::vector<std::string>& names) {
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::vector<TensorInfo> found;
  for (const TensorInfo& tensor : header.tensors) {
    if (std::binary_search(sorted.begin(), sorted.end(), tensor.name)) found.push_back(tensor);
  }
  if (found.size() == sorted.size()) return found;
  const auto held = [&](const std::string& name) {
    return std::any_of(found.begin(), found.end(), [&](const TensorInfo& tensor) { return tensor.name == name; });
  };
  return Error(Code::BadInput, "holds no tensor " + *std::find_if_not(sorted.begin(), sorted.end(), held));
}

std::uint64_t place_for(std::uint64_t next, std::uint64_t size, std::uint64_t in_file) {
  if (size >= kLikeInFileFrom) return next + (in_file % kPage + kPage - next % kPage) % kPage;
  return (next + kPlaceAlignment - 1) / kPlaceAlignment * kPlaceAlignment;
}

std::uint64_t place_tensors(std::vector<TensorInfo>& tensors, std::uint64_t data_begin) {
  std::uint64_t next = 0;
  for (TensorInfo& tensor : tensors) {
    const std::uint64_t size = tensor.end - tensor.begin;
    tensor.begin = place_for(next, size, data_begin + tensor.begin);
    tensor.end = next = tensor.begin + size;
  }
  return next;
}

}  // namespace holdfast::store
