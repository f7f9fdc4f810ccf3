// S10, S22, S23: what a tensorizer file may say of itself. Real files are read in python/tests/test_archives.py.
#include "store/tensorizer_header.h"

#include <gtest/gtest.h>

namespace holdfast::store {
namespace {

std::string name_of(const std::string& stored, std::uint8_t kind = 2) {
  TensorizerEntry entry;
  entry.name = stored;
  entry.kind = kind;
  const auto name = tensorizer_name(entry);
  return name ? *name : "refused";
}

TEST(TensorizerHeader, NamesArePathsJoinedByDots) {
  EXPECT_EQ(name_of("a.b"), "a.b");
  EXPECT_EQ(name_of("\x1E[\"x\",0,\"y\"]"), "x.0.y");
  EXPECT_EQ(name_of("\x1E[\"\"]"), "");
}

TEST(TensorizerHeader, WhatIsNoListOfTextsAndCountsIsNoName) {
  for (const char* bad : {"\x1E", "\x1E{}", "\x1E[[\"x\"]]", "\x1E[-1]", "\x1E[1.5]", "\x1E[null]", "\x1E[true]",
                          "\x1E\"x\"", "\x1E[\"x\"", "\x1E[\"x\"]]", "\x1E[{\"a\":1}]"}) {
    EXPECT_EQ(name_of(bad), "refused") << bad;
  }
  EXPECT_EQ(name_of("\x1E[\"x\"]", 0), "refused");
  std::string deep(60'000, '[');
  deep.insert(0, 1, '\x1E');
  EXPECT_EQ(name_of(deep), "refused");
}

Bytes head(std::uint32_t version, std::uint8_t flags, std::uint64_t tensors, std::uint64_t index_bytes) {
  ByteWriter out;
  out.put_bytes(as_bytes(kTensorizerSign));
  out.put(version);
  out.put(flags);
  out.put_bytes(Bytes(31 + 16));
  out.put(tensors);
  out.put(index_bytes);
  return std::move(out).take();
}

TEST(TensorizerHeader, VersionsAndFlagsMustFit) {
  EXPECT_TRUE(parse_tensorizer_head(head(1, 0, 2, 100), 1000));
  EXPECT_TRUE(parse_tensorizer_head(head(3, 0, 2, 100), 1000)->encrypted);
  EXPECT_TRUE(parse_tensorizer_head(head(4, 1, 2, 100), 1000)->encrypted);
  EXPECT_TRUE(parse_tensorizer_head(head(5, 2, 2, 100), 1000)->versioned);
  EXPECT_FALSE(parse_tensorizer_head(head(5, 0, 2, 100), 1000)->encrypted);
  for (const auto& bad :
       {head(0, 0, 2, 100), head(6, 0, 2, 100), head(3, 1, 2, 100), head(4, 2, 2, 100), head(5, 4, 2, 100)}) {
    EXPECT_FALSE(parse_tensorizer_head(bad, 1000));
  }
}

TEST(TensorizerHeader, CountsBeyondTheFileAreRefused) {
  EXPECT_FALSE(parse_tensorizer_head(head(1, 0, 2, std::uint64_t{1} << 62U), 1000));
  EXPECT_FALSE(parse_tensorizer_head(head(1, 0, std::uint64_t{1} << 40U, 100), 1000));
  EXPECT_FALSE(parse_tensorizer_head(head(1, 0, 0, 928), 1000));
  EXPECT_TRUE(parse_tensorizer_head(head(1, 0, 0, 927), 1000));
  const Bytes whole = head(1, 0, 0, 0);
  ASSERT_EQ(whole.size(), kTensorizerHeaderBytes);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(parse_tensorizer_head(BytesView(whole).first(size), size)) << size;
  }
}

}  // namespace
}  // namespace holdfast::store
