#include "store/safetensors.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "store/dtype.h"

namespace holdfast::store {
namespace {

using Shape = std::vector<std::uint64_t>;

/// A file's start around `json`.
Bytes file_start(std::string_view json) {
  ByteWriter writer;
  writer.put(static_cast<std::uint64_t>(json.size()));
  Bytes bytes = std::move(writer).take();
  bytes.insert(bytes.end(), as_bytes(json).begin(), as_bytes(json).end());
  return bytes;
}

Result<SafetensorsHeader> parse(std::string_view json, std::uint64_t data_bytes) {
  const Bytes start = file_start(json);
  return parse_safetensors_header(start, start.size() + data_bytes);
}

std::string why_refused(std::string_view json, std::uint64_t data_bytes) {
  const auto header = parse(json, data_bytes);
  if (header) return "";
  EXPECT_EQ(header.error().code(), Code::BadInput);
  return header.error().message();
}

TensorInfo tensor(std::string name, std::string dtype, Shape shape) {
  return {std::move(name), std::move(dtype), std::move(shape), 0, 0};
}

// ---- writing

TEST(SafetensorsWriter, WritesTheFormatToTheLetter) {
  const auto header = lay_out_tensors({tensor("b", "U8", {3}), tensor("a", "F32", {2, 1})}, {{"format", "pt"}});
  ASSERT_TRUE(header) << header.error().message();
  const auto bytes = format_safetensors_header(*header);
  ASSERT_TRUE(bytes);
  const std::string json = R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
                           R"("b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})";
  const std::string padded = json + std::string((8 - json.size() % 8) % 8, ' ');
  EXPECT_EQ(as_text(*bytes).substr(8), padded);
  EXPECT_EQ(ByteReader(*bytes).get<std::uint64_t>(), padded.size());
  EXPECT_EQ(header->data_begin, bytes->size());
  EXPECT_EQ(header->data_begin % 8, 0U);
  EXPECT_EQ(header->file_bytes(), bytes->size() + 11);
}

TEST(SafetensorsWriter, AlignsEveryTensorToItsElements) {
  const auto header = lay_out_tensors({tensor("a", "U8", {3}), tensor("b", "BF16", {3}), tensor("c", "F64", {1}),
                                       tensor("d", "F32", {3}), tensor("e", "F4", {2})},
                                      {});
  ASSERT_TRUE(header);
  for (const TensorInfo& info : header->tensors) {
    const std::uint64_t element = std::max(*dtype_bits(info.dtype) / 8U, 1U);
    EXPECT_EQ(info.begin % element, 0U) << info.name;
  }
}

TEST(SafetensorsWriter, RefusesNamesThatReadersCantTrust) {
  EXPECT_FALSE(lay_out_tensors({tensor("", "U8", {1})}, {}));
  EXPECT_FALSE(lay_out_tensors({tensor(std::string("a\0b", 3), "U8", {1})}, {}));
  EXPECT_FALSE(lay_out_tensors({tensor("\xff", "U8", {1})}, {}));
  EXPECT_FALSE(lay_out_tensors({tensor("__metadata__", "U8", {1})}, {}));
  EXPECT_FALSE(lay_out_tensors({tensor(std::string(70'000, 'n'), "U8", {1})}, {}));
  const auto twice = lay_out_tensors({tensor("w", "U8", {1}), tensor("x", "U8", {1}), tensor("w", "I8", {1})}, {});
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().message(), "safetensors: duplicate tensor w");
}

TEST(SafetensorsWriter, RefusesSizesBeyond64Bits) {
  EXPECT_FALSE(lay_out_tensors({tensor("a", "U8", {UINT64_MAX}), tensor("b", "U8", {UINT64_MAX})}, {}));
  EXPECT_FALSE(lay_out_tensors({tensor("a", "F64", {UINT64_MAX})}, {}));
}

TEST(SafetensorsWriter, RefusesAHeaderAboveTheCapNamingBoth) {
  const auto header = lay_out_tensors({tensor("a", "U8", {1})}, {{"note", std::string(100'000'001, 'x')}});
  ASSERT_FALSE(header);
  EXPECT_NE(header.error().message().find("100000000"), std::string::npos) << header.error().message();
}

RC_GTEST_PROP(Safetensors, ReadsBackWhatItWrote, ()) {
  const auto names = *rc::gen::unique<std::vector<std::string>>(
      rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127))));
  std::vector<TensorInfo> tensors;
  for (const std::string& name : names) {
    const auto dtype = *rc::gen::element<std::string>("F32", "U8", "BF16", "I64", "BOOL", "C64", "F8_E4M3", "F4");
    auto shape = *rc::gen::container<Shape>(rc::gen::inRange<std::uint64_t>(0, 9));
    if (dtype == "F4") shape.push_back(2);
    shape.resize(std::min<std::size_t>(shape.size(), 8));
    if (dtype == "F4") shape.back() = 2;
    tensors.push_back(tensor(name, dtype, shape));
  }
  const auto metadata = *rc::gen::container<std::map<std::string, std::string>>(
      rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127)),
      rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127)));
  const auto header = lay_out_tensors(tensors, metadata);
  RC_ASSERT(header.has_value());
  const auto bytes = format_safetensors_header(*header);
  RC_ASSERT(bytes.has_value());
  const auto again = parse_safetensors_header(*bytes, header->file_bytes());
  RC_ASSERT(again.has_value());
  RC_ASSERT(again->data_begin == header->data_begin);
  RC_ASSERT(again->metadata == header->metadata);
  auto by_name = [](const TensorInfo& a, const TensorInfo& b) { return a.name < b.name; };
  auto left = again->tensors, right = header->tensors;
  std::sort(left.begin(), left.end(), by_name);
  std::sort(right.begin(), right.end(), by_name);
  RC_ASSERT(left == right);
}

// ---- reading: S numbers are those of the bad inputs that the format's readers are known to meet

TEST(SafetensorsReader, S2ReadsAFileOfMetadataAlone) {
  const auto header = parse(R"({"__metadata__":{"a":"b"}})", 0);
  ASSERT_TRUE(header);
  EXPECT_TRUE(header->tensors.empty());
  EXPECT_EQ(header->metadata.at("a"), "b");
  EXPECT_TRUE(parse("{}", 0));
}

TEST(SafetensorsReader, SortsByPlaceWhateverTheOrderOfTheHeader) {
  const auto header = parse(
      R"({"b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]},"a":{"data_offsets":[0,8],"shape":[2],"dtype":"F32"}})",
      11);
  ASSERT_TRUE(header) << header.error().message();
  EXPECT_EQ(header->tensors[0], (TensorInfo{"a", "F32", {2}, 0, 8}));
  EXPECT_EQ(header->tensors[1], (TensorInfo{"b", "U8", {3}, 8, 11}));
}

TEST(SafetensorsReader, TakesBlanksAroundTheHeader) {
  EXPECT_TRUE(parse(" \t\n{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}   ", 1));
}

TEST(SafetensorsReader, S3RefusesADuplicateTensorByName) {
  const char* json =
      R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"w":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}})";
  EXPECT_EQ(why_refused(json, 1), "safetensors: duplicate tensor w");
}

TEST(SafetensorsReader, RefusesEveryOtherDuplicate) {
  EXPECT_NE(why_refused(R"({"__metadata__":{},"__metadata__":{}})", 0), "");
  EXPECT_NE(why_refused(R"({"__metadata__":{"a":"b","a":"c"}})", 0), "");
  EXPECT_NE(why_refused(R"({"w":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})", 1), "");
}

TEST(SafetensorsReader, S7RefusesOffsetsThatDoNotFitTheShape) {
  EXPECT_NE(why_refused(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4).find("needs 8 bytes"),
            std::string::npos);
}

TEST(SafetensorsReader, S8RefusesUnknownDtypesAndOverflows) {
  EXPECT_NE(why_refused(R"({"w":{"dtype":"F3","shape":[1],"data_offsets":[0,1]}})", 1).find("unknown dtype F3"),
            std::string::npos);
  EXPECT_NE(why_refused(R"({"w":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0), "");
  EXPECT_NE(why_refused(R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[18446744073709551615,0]}})", 1), "");
  EXPECT_NE(why_refused(R"({"w":{"dtype":"U8","shape":[99999999999999999999],"data_offsets":[0,1]}})", 1), "");
}

TEST(SafetensorsReader, S9RefusesOverlapsHolesAndReversedOffsetsNamingBoth) {
  const std::string overlap = why_refused(
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
      6);
  EXPECT_NE(overlap.find("a (0..4) and b (2..6) overlap"), std::string::npos) << overlap;
  const std::string hole = why_refused(
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[1],"data_offsets":[5,6]}})",
      6);
  EXPECT_NE(hole.find("between a (0..4) and b (5..6)"), std::string::npos) << hole;
  EXPECT_NE(why_refused(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})", 1).find("ends before"),
            std::string::npos);
  EXPECT_NE(why_refused(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[-1,0]}})", 1).find("negative"),
            std::string::npos);
  EXPECT_NE(why_refused(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2).find("hole"), std::string::npos);
}

TEST(SafetensorsReader, S10RefusesAHeaderLargerThanTheFileBeforeAllocating) {
  for (const std::uint64_t claim : {std::uint64_t{1} << 62U, std::uint64_t{1} << 40U, UINT64_MAX, std::uint64_t{9}}) {
    ByteWriter writer;
    writer.put(claim);
    Bytes bytes = std::move(writer).take();
    bytes.resize(16);
    EXPECT_FALSE(safetensors_prefix_bytes(bytes, bytes.size())) << claim;
    EXPECT_FALSE(parse_safetensors_header(bytes, bytes.size())) << claim;
  }
}

TEST(SafetensorsReader, S11RefusesTrailingBytesAndTruncationNamingTheSizes) {
  const char* json = R"({"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
  EXPECT_EQ(why_refused(json, 4), "");
  EXPECT_NE(why_refused(json, 5).find("end at byte 4 of the data, the file has 5"), std::string::npos);
  EXPECT_NE(why_refused(json, 3).find("has 3 bytes of data"), std::string::npos);
}

TEST(SafetensorsReader, S12TakesTensorsOfNoBytes) {
  const auto header = parse(
      R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"e":{"dtype":"F32","shape":[0,5],"data_offsets":[2,2]},)"
      R"("z":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})",
      2);
  ASSERT_TRUE(header) << header.error().message();
  EXPECT_EQ(header->tensors.size(), 3U);
}

TEST(SafetensorsReader, S13TakesSmallFloats) {
  EXPECT_TRUE(parse(
      R"({"a":{"dtype":"F4","shape":[4],"data_offsets":[0,2]},"b":{"dtype":"F8_E8M0","shape":[1],"data_offsets":[2,3]}})",
      3));
  EXPECT_FALSE(parse(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2));
}

TEST(SafetensorsReader, S14TakesMisalignedTensorsAndNulInANameOnReading) {
  EXPECT_TRUE(parse(
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})",
      5));
  const auto header = parse(R"({"a\u0000b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->tensors[0].name.size(), 3U);
}

TEST(SafetensorsReader, S16TakesADimensionBeyond32Bits) {
  const auto header =
      parse(R"({"w":{"dtype":"U8","shape":[8589934592],"data_offsets":[0,8589934592]}})", 8'589'934'592U);
  ASSERT_TRUE(header) << header.error().message();
  EXPECT_EQ(header->tensors[0].shape[0], 8'589'934'592U);
}

TEST(SafetensorsReader, S23RefusesNamesThatAreNotUtf8OrTooLong) {
  EXPECT_NE(why_refused("{\"\xff\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1), "");
  const std::string name(65'536, 'n');
  EXPECT_NE(why_refused("{\"" + name + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1), "");
}

TEST(SafetensorsReader, S23RefusesDeepNestingCheaply) {
  EXPECT_NE(why_refused(std::string(1'000'000, '['), 0), "");
  EXPECT_NE(why_refused("{\"a\":" + std::string(1'000'000, '['), 0), "");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_NE(why_refused(objects, 0), "");
}

TEST(SafetensorsReader, RefusesWhatIsNoHeader) {
  for (const char* json : {"",
                           "   ",
                           "[]",
                           "null",
                           "7",
                           "{",
                           "{}x",
                           "{},",
                           "{\"a\":1}",
                           "{\"a\":{}}",
                           "{\"__metadata__\":{\"a\":1}}",
                           "{\"__metadata__\":{\"a\":{}}}",
                           "{\"__metadata__\":[]}",
                           "\xef\xbb\xbf{}",
                           "{\"a\":null}",
                           "/* */{}",
                           R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"extra":1}})",
                           R"({"a":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}})",
                           R"({"a":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}})",
                           R"({"a":{"dtype":"U8","shape":1,"data_offsets":[0,1]}})",
                           R"({"a":{"dtype":8,"shape":[1],"data_offsets":[0,1]}})",
                           R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}})",
                           R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,1]}})",
                           R"({"a":{"dtype":"U8","shape":[true],"data_offsets":[0,1]}})",
                           R"({"a":{"dtype":"U8","shape":[1],"data_offsets":["0",1]}})"}) {
    EXPECT_NE(why_refused(json, 1), "") << json;
  }
}

TEST(SafetensorsReader, RefusesWhatHidesBehindANulByte) {
  EXPECT_NE(why_refused(std::string_view("{}\0[", 4), 0).find("NUL"), std::string::npos);
}

TEST(SafetensorsReader, RefusesMoreThan64Dimensions) {
  std::string shape = "1";
  for (int i = 0; i < 64; ++i) shape += ",1";
  EXPECT_NE(why_refused(R"({"a":{"dtype":"U8","shape":[)" + shape + R"(],"data_offsets":[0,1]}})", 1), "");
}

TEST(SafetensorsReader, NeverReadsPastAPrefixThatIsCutAnywhere) {
  const Bytes start = file_start(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})");
  for (std::size_t size = 0; size < start.size(); ++size) {
    EXPECT_FALSE(parse_safetensors_header(BytesView(start).first(size), start.size() + 1)) << size;
    EXPECT_FALSE(parse_safetensors_header(BytesView(start).first(size), size)) << size;
  }
}

TEST(FormatHeader, S1AHeaderAboveTheCapIsRefusedWithItsSizeAndTheCap) {
  const auto header = lay_out_tensors({{"a", "U8", {1}}}, {{"note", std::string(kHeaderBytesMax, 'x')}});
  const std::string why = header ? format_safetensors_header(*header).error().message() : header.error().message();
  EXPECT_NE(why.find("100000000"), std::string::npos) << why;
  EXPECT_NE(why.find("fewer tensors"), std::string::npos) << why;
}

TEST(ReadHeader, S1AHeaderAboveTheCapIsRefused) {
  ByteWriter first;
  first.put(kHeaderBytesMax + 1);
  const auto bytes = safetensors_prefix_bytes(std::move(first).take(), std::uint64_t{1} << 40U);
  ASSERT_FALSE(bytes);
  EXPECT_NE(bytes.error().message().find("100000000"), std::string::npos) << bytes.error().message();
}

}  // namespace
}  // namespace holdfast::store
