#include "store/tensor_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <list>

#include "sim/sim_world.h"
#include "world/real_world.h"

namespace holdfast::store {
namespace {

constexpr const char* kFile = "/models/m.safetensors";

/// Tensors with bytes of their own.
class Tensors {
 public:
  Tensors& add(const std::string& name, const std::string& dtype, std::vector<std::uint64_t> shape, std::size_t bytes) {
    Bytes& data = data_.emplace_back(bytes);
    for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 7 + name.size() + i / 251);
    list_.push_back({name, dtype, std::move(shape), data});
    return *this;
  }
  std::span<const TensorData> list() const { return list_; }
  const TensorData& named(const std::string& name) const {
    return *std::find_if(list_.begin(), list_.end(), [&](const TensorData& each) { return each.name == name; });
  }

 private:
  std::list<Bytes> data_;
  std::vector<TensorData> list_;
};

Tensors few() {
  Tensors tensors;
  tensors.add("w", "F32", {3, 5}, 60).add("b", "U8", {7}, 7).add("none", "BF16", {0, 4}, 0).add("one", "F64", {}, 8);
  return tensors;
}

/// Over three chunks of a megabyte, none of whose edges is a tensor's.
Tensors large() {
  Tensors tensors;
  tensors.add("a", "U8", {700'000}, 700'000).add("b", "U8", {1'500'000}, 1'500'000).add("c", "U8", {900'001}, 900'001);
  return tensors;
}

class TensorFileTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(disk().make_dirs("/models")); }
  world::Disk& disk() { return world_.disk(); }
  void save(const Tensors& tensors, std::map<std::string, std::string> metadata = {}) {
    const auto done = save_tensor_file(disk(), kFile, tensors.list(), std::move(metadata), 2);
    ASSERT_TRUE(done) << done.error().message();
  }
  Bytes content() { return *world::read_file(disk(), kFile, 1U << 30U); }
  void put(BytesView bytes) { ASSERT_TRUE(write_file_atomically(disk(), kFile, bytes)); }
  std::string why_refused() {
    const auto verified = verify_tensor_file(disk(), kFile, 1);
    const auto loaded = load_tensor_file(disk(), kFile, std::nullopt, 1);
    EXPECT_EQ(static_cast<bool>(verified), static_cast<bool>(loaded));
    if (loaded) return "";
    EXPECT_EQ(loaded.error().message(), verified.error().message());
    EXPECT_NE(loaded.error().message().find(kFile), std::string::npos);
    return loaded.error().message();
  }
  static void expect_same(const LoadedTensors& loaded, const Tensors& tensors) {
    for (const TensorInfo& info : loaded.tensors) {
      const TensorData& wanted = tensors.named(info.name);
      EXPECT_EQ(info.dtype, wanted.dtype);
      EXPECT_EQ(info.shape, wanted.shape);
      const BytesView bytes = loaded.block.all().subspan(info.begin, info.end - info.begin);
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), wanted.bytes.begin(), wanted.bytes.end())) << info.name;
    }
  }

  sim::SimWorld world_{1};
};

TEST_F(TensorFileTest, IsReadAsItWasWritten) {
  for (const Tensors& tensors : {few(), large(), Tensors()}) {
    save(tensors, {{"format", "pt"}});
    const auto loaded = load_tensor_file(disk(), kFile, std::nullopt, 1);
    ASSERT_TRUE(loaded) << loaded.error().message();
    EXPECT_EQ(loaded->tensors.size(), tensors.list().size());
    expect_same(*loaded, tensors);
    EXPECT_EQ(loaded->file.header.metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
    EXPECT_TRUE(loaded->file.checksums);
  }
}

// The simulated disk is for one thread; the real one for many.
TEST_F(TensorFileTest, ManyThreadsReadTheSame) {
  const auto real = world::make_real_world();
  const std::string path = testing::TempDir() + "holdfast-tensor-file-" + std::to_string(::getpid());
  const Tensors tensors = large();
  const auto saved = save_tensor_file(real->disk(), path, tensors.list(), {}, 4);
  ASSERT_TRUE(saved) << saved.error().message();
  const auto whole = load_tensor_file(real->disk(), path, std::nullopt, 4);
  const auto some = load_tensor_file(real->disk(), path, {{"a", "c"}}, 4);
  EXPECT_TRUE(verify_tensor_file(real->disk(), path, 4));
  EXPECT_TRUE(real->disk().remove(path));
  ASSERT_TRUE(whole && some);
  expect_same(*whole, tensors);
  expect_same(*some, tensors);
}

// Three pieces, which are written from where they lie.
TEST_F(TensorFileTest, TensorsThatLieInMemoryAsInTheFileMakeTheSameFile) {
  Tensors apart;
  apart.add("small", "BF16", {3}, 6).add("none", "F32", {0}, 0);
  apart.add("large", "F32", {1'300'000}, 5'200'000).add("b", "F32", {900'001}, 3'600'004);
  ASSERT_TRUE(save_tensor_file(disk(), kFile, apart.list(), {}, 1));
  const Bytes expected = content();
  Bytes arena;
  std::vector<TensorData> together;
  arena.reserve(9'000'000);
  for (const char* name : {"none", "b", "large", "small"}) {
    const TensorData& tensor = apart.named(name);
    together.push_back(tensor);
    together.back().bytes = BytesView(arena.data() + arena.size(), tensor.bytes.size());
    arena.insert(arena.end(), tensor.bytes.begin(), tensor.bytes.end());
  }
  for (const bool in_place : {true, false}) {
    if (!in_place) std::swap(together[1].bytes, together[2].bytes);  // no longer of their sizes
    const auto done = save_tensor_file(disk(), kFile, together, {}, 1);
    ASSERT_EQ(static_cast<bool>(done), in_place);
    EXPECT_EQ(content(), expected);
  }
}

TEST_F(TensorFileTest, GivesThoseAskedForWithoutReadingTheOthers) {
  const Tensors tensors = large();
  save(tensors);
  const auto some = load_tensor_file(disk(), kFile, {{"c", "a", "c"}}, 1);
  ASSERT_TRUE(some) << some.error().message();
  ASSERT_EQ(some->tensors.size(), 2u);
  expect_same(*some, tensors);

  Bytes damaged = content();
  damaged.back() ^= std::byte{1};  // in c, in the last chunk
  put(damaged);
  EXPECT_TRUE(load_tensor_file(disk(), kFile, {{"a"}}, 1));
  EXPECT_FALSE(load_tensor_file(disk(), kFile, {{"c"}}, 1));
  const auto missing = load_tensor_file(disk(), kFile, {{"a", "d"}}, 1);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message().find("holds no tensor d"), std::string::npos);
}

TEST_F(TensorFileTest, NamesTensorAndChunkOfADamagedByte) {
  save(large());
  const auto head = read_tensor_file(disk(), kFile);
  ASSERT_TRUE(head);
  Bytes damaged = content();
  damaged[head->header.data_begin + 300] ^= std::byte{4};
  put(damaged);
  const std::string at = std::to_string(head->header.data_begin);
  EXPECT_NE(why_refused().find("tensors a to b: chunk 0 (bytes " + at), std::string::npos) << why_refused();
}

TEST_F(TensorFileTest, AnyFlippedBitIsFound) {
  save(few());
  const Bytes good = content();
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const unsigned bit : {0U, 3U, 7U}) {
      Bytes bad = good;
      bad[i] ^= static_cast<std::byte>(1U << bit);
      put(bad);
      // One flip alone can take the checksums away: that of their name.
      const auto loaded = load_tensor_file(disk(), kFile, std::nullopt, 1);
      if (loaded) {
        EXPECT_FALSE(loaded->file.checksums) << "byte " << i;
        expect_same(*loaded, few());
      }
    }
  }
}

TEST_F(TensorFileTest, AFileCutShortAnywhereIsRefused) {
  save(few());
  const Bytes good = content();
  for (std::size_t size = 0; size < good.size(); ++size) {
    put(BytesView(good).first(size));
    EXPECT_NE(why_refused(), "") << size << " bytes";
  }
  Bytes longer = good;
  longer.push_back(std::byte{0});
  put(longer);
  EXPECT_NE(why_refused(), "");
}

TEST_F(TensorFileTest, OneOfAnotherProgramLoadsWithoutChecksums) {
  const Tensors tensors = few();
  const auto header = lay_out(tensors.list(), {{"format", "pt"}});
  Bytes bytes = *format_safetensors_header(*header);
  const auto ordered = in_order(*header, tensors.list());
  for (const TensorData* tensor : *ordered) bytes.insert(bytes.end(), tensor->bytes.begin(), tensor->bytes.end());
  put(bytes);
  const auto loaded = load_tensor_file(disk(), kFile, std::nullopt, 1);
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_FALSE(loaded->file.checksums);
  expect_same(*loaded, tensors);
  expect_same(*load_tensor_file(disk(), kFile, {{"b", "one"}}, 1), tensors);
}

TEST_F(TensorFileTest, ChecksumsOfAnotherFileAreRefused) {
  const Tensors tensors = few();
  save(tensors, {{"holdfast.note", "x"}});
  Bytes other = content();
  const std::string_view text = as_text(other);
  const std::size_t at = text.find("holdfast.note\":\"x") + 16;
  other[at] = std::byte{'y'};
  put(other);
  EXPECT_NE(why_refused().find("the header (bytes 0 to"), std::string::npos) << why_refused();
}

TEST_F(TensorFileTest, RefusesWhatTheFormatHasNoRoomForAndKeepsTheOldFile) {
  save(few());
  const Bytes before = content();
  Tensors twice;
  twice.add("w", "U8", {1}, 1).add("w", "U8", {1}, 1);
  Tensors wrong_size;
  wrong_size.add("w", "F32", {2}, 7);
  for (const Tensors& bad : {std::cref(twice), std::cref(wrong_size)}) {
    const auto done = save_tensor_file(disk(), kFile, bad.list(), {}, 1);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), Code::BadInput);
  }
  EXPECT_FALSE(save_tensor_file(disk(), kFile, few().list(), {{kChecksumsKey, "mine"}}, 1));
  EXPECT_EQ(content(), before);
  EXPECT_EQ(disk().list("/models")->size(), 1u);
}

TEST_F(TensorFileTest, AMachineThatDiesAtAnyCallLeavesTheOldOrTheNewFile) {
  Tensors newer;
  newer.add("n", "I32", {4}, 16);
  for (std::uint64_t calls = 0;; ++calls) {
    sim::SimWorld world(calls);
    ASSERT_TRUE(world.disk().make_dirs("/models"));
    ASSERT_TRUE(world.disk().sync_dir("/"));
    ASSERT_TRUE(save_tensor_file(world.disk(), kFile, few().list(), {}, 1));
    world.crash_after(calls);
    const bool acknowledged = static_cast<bool>(save_tensor_file(world.disk(), kFile, newer.list(), {}, 1));
    world.restart();
    const auto loaded = load_tensor_file(world.disk(), kFile, std::nullopt, 1);
    ASSERT_TRUE(loaded) << loaded.error().message();
    const bool is_new = loaded->tensors.size() == 1;
    EXPECT_TRUE(is_new || !acknowledged) << "after " << calls << " calls";
    expect_same(*loaded, is_new ? newer : few());
    if (acknowledged) break;
  }
}

TEST_F(TensorFileTest, AFullDiskLosesNothing) {
  save(few());
  const Bytes before = content();
  world_.node().disk().policy.bytes_max = world_.node().disk().bytes_used() + 100;
  const auto done = save_tensor_file(disk(), kFile, large().list(), {}, 1);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::Unavailable);
  EXPECT_EQ(content(), before);
  EXPECT_EQ(disk().list("/models")->size(), 1u);
}

}  // namespace
}  // namespace holdfast::store
