#include "store/tensor_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <numeric>

namespace holdfast::store {
namespace {

using testing::HasSubstr;

Box box(std::vector<std::uint64_t> begin, std::vector<std::uint64_t> shape) {
  return {std::move(begin), std::move(shape)};
}

/// Every element of a tensor of that shape has its place as its value.
std::vector<std::uint32_t> elements_of(const std::vector<std::uint64_t>& whole, const Box& part) {
  std::vector<std::uint32_t> values;
  std::vector<std::uint64_t> at = part.begin;
  for (std::uint64_t n = 0; n < element_count(part.shape); ++n) {
    std::uint64_t place = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) place = place * whole[i] + at[i];
    values.push_back(static_cast<std::uint32_t>(place));
    for (std::size_t i = at.size(); i-- > 0;) {
      if (++at[i] < part.begin[i] + part.shape[i]) break;
      at[i] = part.begin[i];
    }
  }
  return values;
}

/// Cuts the box into parts by halving it at random places.
void cut(const Box& whole, int cuts, std::vector<Box>& parts) {
  const auto along = *rc::gen::inRange<std::size_t>(0, whole.shape.size());
  if (cuts == 0 || whole.shape[along] < 2) return parts.push_back(whole);
  const auto at = *rc::gen::inRange<std::uint64_t>(1, whole.shape[along]);
  Box left = whole, right = whole;
  left.shape[along] = at;
  right.begin[along] += at;
  right.shape[along] -= at;
  cut(left, cuts - 1, parts);
  cut(right, cuts - 1, parts);
}

RC_GTEST_PROP(PlanRead, S28FindsEveryElementOfAnyBoxInPartsOfAnyLayout, ()) {
  const auto dimensions = *rc::gen::inRange<std::size_t>(1, 5);
  std::vector<std::uint64_t> shape;
  for (std::size_t i = 0; i < dimensions; ++i) shape.push_back(*rc::gen::inRange<std::uint64_t>(1, 7));
  std::vector<Box> boxes;
  cut(box(std::vector<std::uint64_t>(dimensions, 0), shape), *rc::gen::inRange(0, 4), boxes);
  Box wanted;
  for (const std::uint64_t size : shape) {
    wanted.begin.push_back(*rc::gen::inRange<std::uint64_t>(0, size + 1));
    wanted.shape.push_back(*rc::gen::inRange<std::uint64_t>(0, size - wanted.begin.back() + 1));
  }

  WholeTensor tensor{"U32", shape, {}};
  std::vector<std::vector<std::uint32_t>> files;
  for (const Box& part : boxes) {
    tensor.parts.push_back({files.size(), 0, part});
    files.push_back(elements_of(shape, part));
  }
  const auto runs = plan_read(tensor, wanted);
  RC_ASSERT(runs.has_value());
  std::vector<std::uint32_t> got(element_count(wanted.shape), UINT32_MAX);
  std::uint64_t bytes = 0;
  for (const PartRun& run : *runs) {
    RC_ASSERT(run.from + run.bytes <= files[run.file].size() * 4);
    RC_ASSERT(run.to + run.bytes <= got.size() * 4);
    std::memcpy(reinterpret_cast<char*>(got.data()) + run.to,
                reinterpret_cast<const char*>(files[run.file].data()) + run.from, run.bytes);
    bytes += run.bytes;
  }
  RC_ASSERT(bytes == got.size() * 4);
  RC_ASSERT(got == elements_of(shape, wanted));
}

TEST(PlanRead, TakesWholeRowsInOneRun) {
  const WholeTensor tensor{"BF16", {8, 4}, {{0, 0, box({0, 0}, {4, 4})}, {1, 64, box({4, 0}, {4, 4})}}};
  const auto runs = plan_read(tensor, box({2, 0}, {4, 4}));
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 2U);
  EXPECT_EQ((*runs)[0].from, 16U);
  EXPECT_EQ((*runs)[0].bytes, 16U);
  EXPECT_EQ((*runs)[1].from, 64U);
  EXPECT_EQ((*runs)[1].to, 16U);
}

TEST(PlanRead, AScalarIsOneRun) {
  const auto runs = plan_read({"F64", {}, {{0, 8, {}}}}, {});
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 1U);
  EXPECT_EQ(runs->front().bytes, 8U);
}

TEST(PlanRead, PackedElementsAreCutWhereBytesBegin) {
  const WholeTensor tensor{"F4", {2, 8}, {{0, 0, box({0, 0}, {2, 8})}}};
  const auto runs = plan_read(tensor, box({1, 2}, {1, 4}));
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 1U);
  EXPECT_EQ(runs->front().from, 5U);
  EXPECT_EQ(runs->front().bytes, 2U);
  EXPECT_FALSE(plan_read(tensor, box({1, 1}, {1, 4})));
}

TEST(PlanRead, SaysWhatIsMissingOrTwice) {
  const WholeTensor half{"U8", {4}, {{0, 0, box({0}, {2})}}};
  const auto missing = plan_read(half, box({0}, {4}));
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message(), HasSubstr("of 4 elements only 2"));
  const WholeTensor twice{"U8", {4}, {{0, 0, box({0}, {3})}, {1, 0, box({2}, {2})}}};
  const auto overlap = plan_read(twice, box({0}, {4}));
  ASSERT_FALSE(overlap);
  EXPECT_THAT(overlap.error().message(), HasSubstr("two parts"));
  EXPECT_FALSE(plan_read(half, box({0}, {5})));
  EXPECT_FALSE(plan_read(half, box({0, 0}, {1, 1})));
  EXPECT_FALSE(plan_read(half, box({UINT64_MAX}, {2})));
}

SafetensorsHeader header_of(std::vector<TensorInfo> tensors, const Slices& slices) {
  return *lay_out_tensors(std::move(tensors), {{kSlicesKey, *format_slices(slices)}});
}

TEST(GatherParts, PutsSlicesOfSeveralFilesTogether) {
  const auto first = header_of({{"w[0]", "U8", {3}}, {"b", "U8", {2}}}, {{"w[0]", {"w", {5}, {0}}}});
  const auto second = header_of({{"w[3]", "U8", {2}}, {"b", "U8", {2}}}, {{"w[3]", {"w", {5}, {3}}}});
  const PartsFile files[] = {{&first, nullptr}, {&second, nullptr}};
  const auto all = gather_parts(files);
  ASSERT_TRUE(all) << all.error().message();
  ASSERT_EQ(all->size(), 2U);
  EXPECT_EQ(all->at("w").shape, (std::vector<std::uint64_t>{5}));
  EXPECT_EQ(all->at("w").parts.size(), 2U);
  EXPECT_EQ(all->at("b").parts.size(), 1U) << "replicas are one part";
}

TEST(GatherParts, TakesOnlyTheNamesThatCount) {
  const auto first = header_of({{"a", "U8", {3}}, {"b", "U8", {2}}}, {});
  const std::set<std::string> names = {"b"};
  const PartsFile files[] = {{&first, &names}};
  const auto all = gather_parts(files);
  ASSERT_TRUE(all) << all.error().message();
  ASSERT_EQ(all->size(), 1U);
  EXPECT_EQ(all->begin()->first, "b");
}

TEST(GatherParts, PartsThatDoNotBelongTogetherAreRefused) {
  const auto first = header_of({{"w[0]", "U8", {3}}}, {{"w[0]", {"w", {5}, {0}}}});
  for (const auto& second : {header_of({{"w[3]", "I8", {2}}}, {{"w[3]", {"w", {5}, {3}}}}),
                             header_of({{"w[3]", "U8", {2}}}, {{"w[3]", {"w", {6}, {3}}}})}) {
    const PartsFile files[] = {{&first, nullptr}, {&second, nullptr}};
    const auto all = gather_parts(files);
    ASSERT_FALSE(all);
    EXPECT_THAT(all.error().message(), HasSubstr("tensor w is"));
  }
}

TEST(Slices, ReadBackWhatWasWritten) {
  const Slices slices = {{"w[2,0]", {"w", {4, 3}, {2, 0}}}, {"s", {"scalar", {}, {}}}};
  const auto header = header_of({{"w[2,0]", "U8", {2, 3}}, {"s", "F32", {}}}, slices);
  const auto again = slices_of(header);
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(*again, slices);
}

TEST(Slices, RefuseWhatCantBe) {
  for (const char* text :
       {"", "[]", "{", R"({"w":1})", R"({"w":{"of":"w","shape":[4]}})", R"({"x":{"of":"w","shape":[4],"begin":[0]}})",
        R"({"w":{"of":"w","shape":[4],"begin":[3]}})", R"({"w":{"of":"w","shape":[4,1],"begin":[0,0]}})",
        R"({"w":{"of":"w","shape":[4],"begin":[-1]}})", R"({"w":{"of":"w","shape":[1],"begin":[0]}})",
        R"({"w":{"of":7,"shape":[4],"begin":[0]}})", R"({"w":{"of":"w","shape":[4],"begin":[1e30]}})",
        R"({"w":{"of":"w","shape":[18446744073709551615],"begin":[18446744073709551615]}})"}) {
    const auto header = lay_out_tensors({{"w", "U8", {2}}}, {{kSlicesKey, text}});
    ASSERT_TRUE(header);
    const auto slices = slices_of(*header);
    ASSERT_FALSE(slices) << text;
    EXPECT_EQ(slices.error().code(), Code::BadInput);
    EXPECT_THAT(slices.error().message(), HasSubstr(kSlicesKey));
  }
}

}  // namespace
}  // namespace holdfast::store
