#include "store/tensor_slices.h"

#include <gtest/gtest.h>

#include "store/test_counted_files.h"

namespace holdfast::store {
namespace {

constexpr const char* kFile = "m";
constexpr std::uint64_t kRows = 3000;
constexpr std::uint64_t kColumns = 700;  // of two bytes each: over four chunks

class TensorSlicesTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<TensorData> tensors = {{"w", "BF16", {kRows, kColumns}, data_}, {"b", "U8", {9}, small_}};
    ASSERT_TRUE(save_tensor_file(files_, kFile, tensors, {}, 1));
    files_.bytes_read = 0;
    ASSERT_TRUE(read_tensor_file(files_, kFile));
    header_bytes_ = files_.bytes_read;
    files_.bytes_read = 0;
  }
  Result<LoadedTensors> load(const Box& box, bool checked = true) {
    files_.bytes_read = 0;
    return load_tensor_slices(files_, kFile, {{"w", box}}, {.threads = 2, .checked = checked});
  }

  Bytes data_ = varied(kRows * kColumns * 2, 5);
  Bytes small_ = varied(9, 1);
  CountedFiles files_;
  std::uint64_t header_bytes_ = 0;
};

// S28.
TEST_F(TensorSlicesTest, ReadTheBytesOfTheSliceAndNoOther) {
  const std::vector<Box> boxes = {{{0, 0}, {kRows, kColumns}},
                                  {{1000, 0}, {50, kColumns}},
                                  {{5, 100}, {2000, 350}},
                                  {{2999, 699}, {1, 1}},
                                  {{3, 3}, {0, 5}},
                                  {{0, 0}, {kRows, 1}}};
  for (const Box& box : boxes) {
    const auto loaded = load(box);
    ASSERT_TRUE(loaded) << loaded.error().message();
    EXPECT_EQ(files_.bytes_read, header_bytes_ + box.shape[0] * box.shape[1] * 2);
    EXPECT_EQ(loaded->tensors[0].shape, box.shape);
    const BytesView bytes = loaded->bytes(loaded->tensors[0]);
    for (std::uint64_t row = 0; row < box.shape[0] && box.shape[1] > 0; ++row) {
      const std::uint64_t from = ((box.begin[0] + row) * kColumns + box.begin[1]) * 2;
      const BytesView wanted = BytesView(data_).subspan(from, box.shape[1] * 2);
      ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), bytes.begin() + static_cast<long>(row * box.shape[1] * 2)));
    }
  }
}

TEST_F(TensorSlicesTest, AreCheckedWhereAllOfAChunkIsRead) {
  const std::uint64_t data_begin = read_tensor_file(files_, kFile)->header.data_begin;
  files_.content(kFile)[data_begin + (std::uint64_t{1} << 20U) + 500'000] ^= std::byte{1};
  const auto rows = load({{0, 0}, {2000, kColumns}});
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().code(), Code::Corrupt);
  EXPECT_TRUE(load({{0, 0}, {2000, kColumns}}, /*checked=*/false));
  EXPECT_TRUE(load({{1000, 0}, {200, kColumns}}));
  EXPECT_TRUE(load({{0, 0}, {kRows, kColumns / 2}}));
}

TEST_F(TensorSlicesTest, AreRefusedBeyondTheirTensor) {
  for (const Box& box :
       std::vector<Box>{{{0}, {1}}, {{0, 1}, {1, kColumns}}, {{kRows + 1, 0}, {0, 1}}, {{9, 9}, {~0ULL, 2}}}) {
    const auto loaded = load(box);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code(), Code::BadInput);
    EXPECT_NE(loaded.error().message().find("m: "), std::string::npos);
    EXPECT_NE(loaded.error().message().find("tensor w"), std::string::npos);
  }
  EXPECT_FALSE(load_tensor_slices(files_, kFile, {{"w", {{0, 0}, {1, 1}}}, {"w", {{0, 0}, {1, 1}}}}, {}));
  EXPECT_FALSE(load_tensor_slices(files_, kFile, {{"x", {{0}, {1}}}}, {}));
}

TEST_F(TensorSlicesTest, GoIntoMemoryThatIsThere) {
  Bytes whole(data_.size());
  Bytes few(9);
  const std::vector<TensorPlacement> places = {{"b", "U8", {9}, few}, {"w", "BF16", {kRows, kColumns}, whole}};
  ASSERT_TRUE(load_tensors_into(files_, kFile, places, {.threads = 2}));
  EXPECT_EQ(whole, data_);
  EXPECT_EQ(few, small_);
  EXPECT_EQ(load_tensors_into(files_, kFile, {{"b", "I8", {9}, few}}, {}).error().code(), Code::BadInput);
  EXPECT_EQ(load_tensors_into(files_, kFile, {{"b", "U8", {3, 3}, few}}, {}).error().code(), Code::BadInput);
}

}  // namespace
}  // namespace holdfast::store
