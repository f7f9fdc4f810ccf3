#include "store/tensor_stream.h"

#include <gtest/gtest.h>

#include <thread>

#include "store/test_counted_files.h"

namespace holdfast::store {
namespace {

constexpr const char* kFile = "m";
constexpr std::size_t kTensors = 40;
constexpr std::size_t kTensorBytes = 300'000;  // chunks end within tensors, and one holds several

class TensorStreamTest : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<TensorData> tensors;
    for (std::size_t i = 0; i < kTensors; ++i) {
      data_.push_back(varied(kTensorBytes + i, static_cast<unsigned>(i)));
      names_.push_back("t" + std::to_string(10 + i));
    }
    for (std::size_t i = 0; i < kTensors; ++i) tensors.push_back({names_[i], "U8", {data_[i].size()}, data_[i]});
    tensors.push_back({"a none", "U8", {0}, {}});
    ASSERT_TRUE(save_tensor_file(files_, kFile, tensors, {}, 1));
  }
  std::unique_ptr<TensorStream> open(const StreamPolicy& policy,
                                     const std::optional<std::vector<std::string>>& names = std::nullopt) {
    auto stream = TensorStream::open(files_, kFile, names, policy);
    EXPECT_TRUE(stream);
    return *std::move(stream);
  }
  void expect_tensor(const StreamedTensor& tensor, std::size_t i) const {
    EXPECT_EQ(tensor.tensor.name, names_[i]);
    const BytesView bytes = tensor.memory.all().subspan(tensor.tensor.begin, tensor.tensor.end - tensor.tensor.begin);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), data_[i].begin(), data_[i].end()));
  }

  CountedFiles files_;
  std::vector<Bytes> data_;
  std::vector<std::string> names_;
};

TEST_F(TensorStreamTest, GivesEachTensorOnceAndReadsEachByteOnce) {
  for (const unsigned threads : {1U, 3U}) {
    const auto stream = open({.window_bytes = 2'000'000, .threads = threads});
    files_.bytes_read = 0;
    std::vector<StreamedTensor> kept;  // S29: they stay what they are
    auto first = stream->next();
    ASSERT_TRUE(first && *first);
    EXPECT_EQ((*first)->tensor.name, "a none");
    for (std::size_t i = 0; i < kTensors; ++i) {
      auto next = stream->next();
      ASSERT_TRUE(next && *next);
      kept.push_back(std::move(**next));
    }
    for (std::size_t i = 0; i < kTensors; ++i) expect_tensor(kept[i], i);
    const auto end = stream->next();
    ASSERT_TRUE(end);
    EXPECT_FALSE(*end);
    EXPECT_LE(files_.bytes_read, stream->about().header.data_bytes());
  }
}

TEST_F(TensorStreamTest, ReadsNoFurtherAheadThanItsWindow) {
  constexpr std::uint64_t kWindow = 1'500'000;
  const auto stream = open({.window_bytes = kWindow, .threads = 2});
  std::size_t taken = 0;
  for (;;) {
    EXPECT_LE(stream->waiting_bytes(), kWindow);
    if (taken % 8 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));  // it could read on meanwhile
    EXPECT_LE(stream->waiting_bytes(), kWindow);
    const auto next = stream->next();
    ASSERT_TRUE(next);
    if (!*next) break;
    ++taken;
  }
  EXPECT_EQ(taken, kTensors + 1);
}

TEST_F(TensorStreamTest, TakesATensorLargerThanItsWindowAlone) {
  const auto stream = open({.window_bytes = 1000, .first_read_bytes = 1000});
  for (std::size_t i = 0; i <= kTensors; ++i) {
    EXPECT_LE(stream->waiting_bytes(), kTensorBytes + kTensors);
    const auto next = stream->next();
    ASSERT_TRUE(next && *next);
  }
}

TEST_F(TensorStreamTest, ReadsInTheOrderAskedFor) {
  const auto stream = open({.window_bytes = 900'000}, std::vector{names_[7], names_[3], names_[38], names_[4]});
  for (const std::size_t i : {7, 3, 38, 4}) {
    const auto next = stream->next();
    ASSERT_TRUE(next && *next);
    expect_tensor(**next, i);
  }
  EXPECT_FALSE(*stream->next());
  EXPECT_EQ(TensorStream::open(files_, kFile, std::vector<std::string>{"no"}, {}).error().code(), Code::BadInput);
}

TEST_F(TensorStreamTest, ReadsNothingMoreOnceStopped) {
  const auto stream = open({.window_bytes = 1'000'000, .threads = 2});
  ASSERT_TRUE(stream->next());
  stream->stop();
  const auto after = stream->next();
  ASSERT_TRUE(after);
  EXPECT_FALSE(*after);
  EXPECT_LT(files_.bytes_read, kTensors * kTensorBytes / 2);
}

// S21: the tensors before the damaged one come, it does not.
TEST_F(TensorStreamTest, EndsWithAnErrorAtTheTensorThatIsDamaged) {
  const std::uint64_t data_begin = open({})->about().header.data_begin;
  files_.content(kFile)[data_begin + 20 * kTensorBytes] ^= std::byte{1};
  for (const std::uint64_t window : {std::uint64_t{1}, std::uint64_t{64} << 20U}) {
    const auto stream = open({.window_bytes = window, .threads = 2});
    std::size_t came = 0;
    auto next = stream->next();
    for (; next && *next; next = stream->next()) ++came;
    ASSERT_FALSE(next);
    EXPECT_EQ(next.error().code(), Code::Corrupt);
    EXPECT_NE(next.error().message().find("m: data: "), std::string::npos) << next.error().message();
    EXPECT_GE(came, 15U);
    EXPECT_LE(came, 21U);
    EXPECT_FALSE(stream->next());
  }
  const auto trusting = open({.checked = false});
  std::size_t came = 0;
  for (auto next = trusting->next(); next && *next; next = trusting->next()) ++came;
  EXPECT_EQ(came, kTensors + 1);
}

TEST_F(TensorStreamTest, EndsItsThreadWithItselfAtAnyMoment) {
  for (int taken = 0; taken < 6; ++taken) {
    const auto stream = open({.window_bytes = 700'000, .threads = 2});
    for (int i = 0; i < taken; ++i) ASSERT_TRUE(stream->next());
  }
}

}  // namespace
}  // namespace holdfast::store
