#include "store/manifest.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace holdfast::store {
namespace {

Manifest small_manifest() {
  Manifest manifest;
  manifest.run_id = "run-1";
  manifest.step = 50;
  manifest.epoch = 3;
  manifest.world_size = 2;
  manifest.structure = R"({"model":["w"]})";
  manifest.shards = {{shard_file_name(0, 2), 1'048'577, 0x0012abcd},
                     {shard_file_name(1, 2), 16, 7, {{"step-000000000040-epoch-3", "shard-0-of-1.safetensors", 9, 1}}}};
  return manifest;
}

/// The body of `manifest` with `was` replaced, under a right checksum.
std::string with_body_changed(const Manifest& manifest, const std::string& was, const std::string& by) {
  const std::string text = *manifest_to_text(manifest);
  const std::size_t begin = text.find('\n') + 1;
  std::string body = text.substr(begin, text.size() - begin - 3);
  const std::size_t place = body.find(was);
  EXPECT_NE(place, std::string::npos) << was;
  return wrap_manifest_body(body.replace(place, was.size(), by));
}

TEST(Manifest, NeedsEachKeptFileOnce) {
  Manifest manifest = small_manifest();
  manifest.shards[0].kept = manifest.shards[1].kept;
  manifest.shards[0].kept.push_back({"step-000000000040-epoch-3", "shard-0-of-2.safetensors", 9, 1});
  EXPECT_EQ(kept_files(manifest).size(), 2U);
}

TEST(Manifest, WritesItsTextToTheLetter) {
  const auto text = manifest_to_text(small_manifest());
  ASSERT_TRUE(text) << text.error().message();
  EXPECT_EQ(*text,
            "{\"holdfast_checkpoint\":3,\"crc32c\":\"9300730c\",\"body\":\n"
            R"({"run_id":"run-1","step":50,"epoch":3,"world_size":2,"structure":"{\"model\":[\"w\"]}","shards":[)"
            R"({"file":"shard-0-of-2.safetensors","bytes":1048577,"header_crc32c":"0012abcd","kept":[]},)"
            R"({"file":"shard-1-of-2.safetensors","bytes":16,"header_crc32c":"00000007","kept":[)"
            R"({"checkpoint":"step-000000000040-epoch-3","file":"shard-0-of-1.safetensors","bytes":9,)"
            R"("header_crc32c":"00000001"}]}]})"
            "\n}\n");
}

RC_GTEST_PROP(Manifest, ReadsBackWhatItWrote, ()) {
  Manifest manifest;
  manifest.run_id = *rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127));
  manifest.run_id.resize(std::min<std::size_t>(manifest.run_id.size(), kRunIdBytesMax));
  manifest.step = *rc::gen::inRange<Step>(0, INT64_MAX);
  manifest.epoch = *rc::gen::arbitrary<Epoch>();
  manifest.world_size = *rc::gen::inRange<std::uint32_t>(1, UINT32_MAX);
  manifest.structure = *rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127));
  const auto writers = *rc::gen::inRange<std::uint32_t>(1, 6);
  for (Rank writer = 0; writer < writers; ++writer) {
    manifest.shards.push_back(
        {shard_file_name(writer, writers), *rc::gen::arbitrary<std::uint64_t>(), *rc::gen::arbitrary<std::uint32_t>()});
  }
  const auto text = manifest_to_text(manifest);
  RC_ASSERT(text.has_value());
  const auto again = manifest_from_text(*text);
  RC_ASSERT(again.has_value());
  RC_ASSERT(*again == manifest);
}

TEST(Manifest, EveryFlippedBitIsNoticed) {
  const std::string text = *manifest_to_text(small_manifest());
  for (std::size_t place = 0; place < text.size(); ++place) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string flipped = text;
      flipped[place] = static_cast<char>(static_cast<unsigned char>(flipped[place]) ^ (1U << bit));
      EXPECT_FALSE(manifest_from_text(flipped)) << "byte " << place << " bit " << bit;
    }
  }
}

TEST(Manifest, EveryTruncationIsNoticed) {
  const std::string text = *manifest_to_text(small_manifest());
  for (std::size_t size = 0; size < text.size(); ++size) {
    const auto manifest = manifest_from_text(std::string_view(text).substr(0, size));
    ASSERT_FALSE(manifest) << size;
    EXPECT_EQ(manifest.error().code(), Code::Corrupt) << size;
  }
  EXPECT_FALSE(manifest_from_text(text + "\n"));
}

TEST(Manifest, SaysWhichVersionItReads) {
  std::string text = *manifest_to_text(small_manifest());
  text.replace(text.find(":3,"), 3, ":12,");
  const auto manifest = manifest_from_text(text);
  ASSERT_FALSE(manifest);
  EXPECT_EQ(manifest.error().code(), Code::BadInput);
  EXPECT_EQ(manifest.error().message(), "manifest version 12, this Holdfast reads 3: use the Holdfast that wrote it");
}

TEST(Manifest, NamesThePlaceOfAWrongValue) {
  const auto refused = [](const std::string& was, const std::string& by) {
    const auto manifest = manifest_from_text(with_body_changed(small_manifest(), was, by));
    EXPECT_FALSE(manifest) << by;
    if (manifest) return std::string();
    EXPECT_EQ(manifest.error().code(), Code::BadInput);
    return manifest.error().message();
  };
  EXPECT_NE(refused("\"step\":50", "\"step\":-1").find("body: step: must be a count"), std::string::npos);
  EXPECT_NE(refused("\"step\":50", "\"step\":18446744073709551615").find("step"), std::string::npos);
  EXPECT_NE(refused("\"epoch\":3", "\"epoch\":\"3\"").find("epoch"), std::string::npos);
  EXPECT_NE(refused("\"world_size\":2", "\"world_size\":0").find("world_size"), std::string::npos);
  EXPECT_NE(refused("\"run_id\"", "\"run\"").find("run_id"), std::string::npos);
  EXPECT_NE(refused("\"epoch\":3", "\"epoch\":3,\"more\":1").find("six keys"), std::string::npos);
  EXPECT_NE(refused("0012abcd", "0012ABCD").find("lower-case"), std::string::npos);
  EXPECT_NE(refused("0012abcd", "0012abc").find("header_crc32c"), std::string::npos);
  EXPECT_NE(refused("\"bytes\":16", "\"bytes\":16.5").find("bytes"), std::string::npos);
}

TEST(Manifest, AKeptFileCantLeadOutOfTheDirectory) {
  for (const char* place : {"..", "/etc", "step-40-epoch-3", ""}) {
    EXPECT_FALSE(manifest_from_text(with_body_changed(small_manifest(), "step-000000000040-epoch-3", place))) << place;
  }
  EXPECT_FALSE(manifest_from_text(with_body_changed(small_manifest(), "shard-0-of-1", "shard-/../x")));
}

TEST(Manifest, AShardsFileCantLeadOutOfTheDirectory) {
  for (const char* file : {"../shard-0-of-2.safetensors", "/etc/passwd", "shard-1-of-2.safetensors", ""}) {
    EXPECT_FALSE(manifest_from_text(with_body_changed(small_manifest(), shard_file_name(0, 2), file))) << file;
  }
}

TEST(Manifest, RefusesToBeWrittenWithoutWhatItMustHave) {
  Manifest no_shards = small_manifest();
  no_shards.shards.clear();
  EXPECT_FALSE(manifest_to_text(no_shards));
  Manifest not_text = small_manifest();
  not_text.structure = "\xff";
  const auto refused = manifest_to_text(not_text);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("UTF-8"), std::string::npos);
  Manifest gap = small_manifest();
  gap.shards.pop_back();
  EXPECT_FALSE(manifest_to_text(gap));
  Manifest no_step = small_manifest();
  no_step.step = kNoStep;
  EXPECT_FALSE(manifest_to_text(no_step));
}

TEST(Manifest, DeepNestingCostsNothing) {
  const auto manifest = manifest_from_text(wrap_manifest_body(std::string(1'000'000, '[')));
  ASSERT_FALSE(manifest);
  EXPECT_EQ(manifest.error().code(), Code::BadInput);
}

}  // namespace
}  // namespace holdfast::store
