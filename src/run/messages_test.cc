#include "run/messages.h"

#include <gtest/gtest.h>

namespace holdfast::run {
namespace {

TEST(Messages, AllFieldsSurviveTheTrip) {
  Assign sent{.rank = 3,
              .local_rank = 3,
              .world_size = 4,
              .epoch = 7,
              .replacement = true,
              .run_id = "r",
              .seed = -5,
              .ckpt_dir = "/c",
              .ckpt_every_steps = 10};
  auto got = decode(encode(sent));
  ASSERT_TRUE(got) << got.error().message();
  auto& assign = std::get<Assign>(*got);
  EXPECT_EQ(assign.fields(), sent.fields());

  Regroup regroup{.epoch = 9, .step = 41, .copies = {{0, 3}, {1, 2}}, .checkpoint = "/c/step"};
  auto again = decode(encode(regroup));
  ASSERT_TRUE(again);
  EXPECT_EQ(std::get<Regroup>(*again).fields(), regroup.fields());

  Promote promote{.env = {{"RANK", "1"}, {"A", std::string("\0b", 2)}}};
  auto third = decode(encode(promote));
  ASSERT_TRUE(third);
  EXPECT_EQ(std::get<Promote>(*third).env, promote.env);
}

TEST(Messages, CutShortAnywhereIsRefused) {
  ShardDone full{.epoch = 1, .step = 2, .file = "f", .bytes = 3, .header_crc32c = 4, .structure = "{}", .error = ""};
  const Bytes whole = encode(full);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(decode(BytesView(whole).first(size))) << size;
  }
}

TEST(Messages, BytesLeftOverAreRefused) {
  Bytes bytes = encode(Heartbeat{});
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(decode(bytes));
}

TEST(Messages, ALyingCountCostsNoMemory) {
  ByteWriter writer;
  writer.put(static_cast<std::uint8_t>(Message(Promote{}).index()));
  writer.put(std::uint32_t{0xffffffff});
  const Bytes bytes = std::move(writer).take();
  EXPECT_FALSE(decode(bytes));
}

TEST(Messages, UnknownKindIsRefused) {
  const Bytes bytes{std::byte{250}};
  auto got = decode(bytes);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), Code::BadInput);
}

}  // namespace
}  // namespace holdfast::run
