// For tests: tensors with bytes of their own, and models made of them.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "store/model.h"
#include "store/model_writer.h"
#include "store/tensor_data.h"

namespace holdfast::store {

/// Bytes that follow from the seed and the name.
class TestTensors {
 public:
  explicit TestTensors(unsigned seed = 0) : seed_(seed) {}
  TestTensors(TestTensors&&) = default;  // a copy would show the other's bytes
  TestTensors& add(const std::string& name, const std::string& dtype, std::vector<std::uint64_t> shape,
                   std::size_t bytes) {
    Bytes& data = data_.emplace_back(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
      data[i] = static_cast<std::byte>(i * 7 + name.back() + seed_ * 31 + i / 251);
    list_.push_back({name, dtype, std::move(shape), data});
    return *this;
  }
  std::span<const TensorData> list() const { return list_; }
  std::vector<std::uint64_t> sizes() const {
    std::vector<std::uint64_t> sizes;
    for (const TensorData& each : list_) sizes.push_back(each.bytes.size());
    return sizes;
  }

  /// Saves all of them into `folder`, several to a file.
  Status save(const ModelPlace& place, const std::string& folder, std::uint64_t bytes_max, Aliases aliases = {}) const {
    ModelContent content;
    for (const TensorData& each : list_) content.tensors.push_back({each.name, each.dtype, each.shape});
    content.aliases = std::move(aliases);
    content.metadata = {{"format", "pt"}};
    content.plan = cut_by_size(sizes(), bytes_max);
    ModelWriter writer = TRY(ModelWriter::begin(place, folder, std::move(content)), "test");
    for (std::size_t file = 0; file < writer.files(); ++file) {
      std::vector<TensorData> part;
      for (const std::size_t tensor : writer.tensors(file)) part.push_back(list_[tensor]);
      TRY(writer.write(file, part, 1), "test");
    }
    return writer.commit();
  }

  /// "" where `model` holds these, byte for byte.
  std::string difference(const Model& model) const {
    if (model.tensors().size() != list_.size()) return std::to_string(model.tensors().size()) + " tensors";
    for (const TensorData& each : list_) {
      const auto found = model.find(each.name);
      if (!found) return "no " + each.name;
      if (found->info->dtype != each.dtype || found->info->shape != each.shape) return "another kind of " + each.name;
      Bytes bytes(each.bytes.size());
      const Status read = found->file->tensors.read({{found->info->begin, bytes}});
      if (!read) return read.error().message();
      if (!std::equal(bytes.begin(), bytes.end(), each.bytes.begin(), each.bytes.end()))
        return "other bytes in " + each.name;
    }
    return "";
  }

 private:
  unsigned seed_;
  std::list<Bytes> data_;
  std::vector<TensorData> list_;
};

/// A few of several kinds, one of them empty; `layers` more.
inline TestTensors test_tensors(unsigned seed, unsigned layers = 3) {
  TestTensors tensors(seed);
  tensors.add("w", "F32", {3, 5}, 60).add("b", "U8", {7}, 7).add("none", "BF16", {0, 4}, 0).add("one", "F64", {}, 8);
  for (unsigned i = 0; i < layers; ++i) tensors.add("layer" + std::to_string(i), "I16", {20}, 40);
  return tensors;
}

}  // namespace holdfast::store
