// What tests of sealed files share: keys, tensors, and a file of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <string>

#include "store/sealed_file.h"
#include "store/tensor_file.h"
#include "world/world.h"

namespace holdfast::store {

inline SealKey key_of(unsigned char first) {
  std::array<std::byte, SealKey::kBytes> bytes{};
  bytes[0] = static_cast<std::byte>(first);
  return SealKey(bytes);
}

/// Tensors with bytes of their own: every other one shrinks when compressed.
class SealedTensors {
 public:
  SealedTensors() = default;
  SealedTensors(SealedTensors&&) = default;  // no copies: the list shows into the data
  SealedTensors& operator=(SealedTensors&&) = default;
  SealedTensors(const SealedTensors&) = delete;
  SealedTensors& operator=(const SealedTensors&) = delete;
  ~SealedTensors() = default;
  SealedTensors& add(const std::string& name, std::size_t bytes) {
    Bytes& data = data_.emplace_back(bytes);
    std::uint32_t state = static_cast<std::uint32_t>(bytes) + 1;
    const bool noise = data_.size() % 2 == 0;
    for (std::size_t i = 0; i < bytes; ++i) {
      state = state * 1664525 + 1013904223;
      data[i] = noise ? static_cast<std::byte>(state >> 24U) : static_cast<std::byte>(i / 1000);
    }
    list_.push_back({name, "U8", {bytes}, data});
    return *this;
  }
  std::span<const TensorData> list() const { return list_; }

 private:
  std::list<Bytes> data_;
  std::vector<TensorData> list_;
};

inline SealedTensors few_sealed() {
  SealedTensors tensors;
  tensors.add("w", 300).add("b", 7).add("none", 0);
  return tensors;
}

class SealedTest : public testing::Test {
 protected:
  static constexpr const char* kPath = "/models/m.safetensors";

  void SetUp() override { ASSERT_TRUE(disk().make_dirs("/models")); }
  virtual world::World& world() = 0;
  world::Disk& disk() { return world().disk(); }

  void save(const SealedTensors& tensors, const Sealing& how, const std::string& path = kPath) {
    SealedFiles target(disk(), how, world().random());
    const auto done = save_tensor_file(target, path, tensors.list(), {{"k", "v"}}, 1);
    ASSERT_TRUE(done) << done.error().message();
  }
  Result<LoadedTensors> load(const std::optional<SealKey>& key,
                             const std::optional<std::vector<std::string>>& names = std::nullopt) {
    UnsealedFiles files(disk(), key);
    return load_tensor_file(files, kPath, names, 1);
  }
  /// "" where it loads.
  std::string why_refused(const std::optional<SealKey>& key) {
    const auto loaded = load(key);
    return loaded ? "" : loaded.error().message();
  }
  Bytes content(const std::string& path = kPath) { return *world::read_file(disk(), path, 1U << 30U); }
  void put(BytesView bytes) { ASSERT_TRUE(write_file_atomically(disk(), kPath, bytes)); }

  static void expect_same(const LoadedTensors& loaded, const SealedTensors& tensors) {
    for (const TensorInfo& info : loaded.tensors) {
      const auto wanted = std::find_if(tensors.list().begin(), tensors.list().end(),
                                       [&](const TensorData& each) { return each.name == info.name; });
      ASSERT_NE(wanted, tensors.list().end());
      const BytesView bytes = loaded.block.all().subspan(info.begin, info.end - info.begin);
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), wanted->bytes.begin(), wanted->bytes.end())) << info.name;
    }
  }
};

}  // namespace holdfast::store
