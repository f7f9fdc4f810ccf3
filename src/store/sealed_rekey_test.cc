// A key is changed in place, over any crash.
#include "sim/sim_world.h"
#include "store/sealed_head.h"
#include "store/test_sealed.h"

namespace holdfast::store {
namespace {

class SealedRekey : public SealedTest {
 protected:
  world::World& world() override { return world_; }
  sim::SimWorld world_{1};
};

const Sealing kEncrypted = {.key = key_of(1), .level = 0};

TEST_F(SealedRekey, TheNewKeyOpensTheFileAndTheOldOneNoLonger) {
  save(few_sealed(), kEncrypted);
  const Bytes before = content();
  ASSERT_TRUE(rekey_sealed_file(disk(), kPath, key_of(1), key_of(2), world_.random()));
  expect_same(*load(key_of(2)), few_sealed());
  EXPECT_NE(why_refused(key_of(1)).find(key_id_text(key_of(2).id())), std::string::npos);
  const Bytes after = content();
  ASSERT_EQ(after.size(), before.size());
  EXPECT_TRUE(std::equal(before.begin() + 4096, before.end(), after.begin() + 4096)) << "data and table are untouched";
  EXPECT_EQ(disk().list("/models")->size(), 1u);
  // As often as anybody likes.
  for (unsigned char next = 3; next < 12; ++next) {
    ASSERT_TRUE(rekey_sealed_file(disk(), kPath, key_of(next - 1), key_of(next), world_.random()));
    expect_same(*load(key_of(next)), few_sealed());
  }
}

TEST_F(SealedRekey, ACrashAtAnyCallLeavesAFileThatOneOfTheKeysOpensAndTheNextTryFinishes) {
  bool both = false;
  bool old_alone = false;
  bool new_alone = false;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    for (std::uint64_t calls = 0;; ++calls) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", crash after " + std::to_string(calls));
      sim::SimWorld world(seed);
      ASSERT_TRUE(world.disk().make_dirs("/models"));
      ASSERT_TRUE(world.disk().sync_dir("/"));
      SealedFiles target(world.disk(), kEncrypted, world.random());
      ASSERT_TRUE(save_tensor_file(target, kPath, few_sealed().list(), {}, 1));
      world.crash_after(calls);
      const bool done = static_cast<bool>(rekey_sealed_file(world.disk(), kPath, key_of(1), key_of(2), world.random()));
      world.restart();
      const auto opens = [&](unsigned char key) {
        UnsealedFiles files(world.disk(), key_of(key));
        const auto loaded = load_tensor_file(files, kPath, std::nullopt, 1);
        if (loaded) expect_same(*loaded, few_sealed());
        return static_cast<bool>(loaded);
      };
      const bool with_old = opens(1);
      const bool with_new = opens(2);
      ASSERT_TRUE(with_old || with_new);
      EXPECT_TRUE(!done || (with_new && !with_old));
      both = both || (with_old && with_new);
      old_alone = old_alone || !with_new;
      new_alone = new_alone || !with_old;
      const Status again = rekey_sealed_file(world.disk(), kPath, key_of(1), key_of(2), world.random());
      ASSERT_TRUE(again) << again.error().message();
      EXPECT_TRUE(opens(2) && !opens(1));
      if (done) break;
    }
  }
  EXPECT_TRUE(both && old_alone && new_alone) << "the sweep meets all three";
}

TEST_F(SealedRekey, ADiskThatFailsNowAndThenLosesNoKey) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    sim::SimWorld world(seed);
    ASSERT_TRUE(world.disk().make_dirs("/models"));
    SealedFiles target(world.disk(), kEncrypted, world.random());
    ASSERT_TRUE(save_tensor_file(target, kPath, few_sealed().list(), {}, 1));
    world.disk_policy().write_error = world.disk_policy().sync_error = world.disk_policy().read_error = 0.3;
    const bool done = static_cast<bool>(rekey_sealed_file(world.disk(), kPath, key_of(1), key_of(2), world.random()));
    world.disk_policy() = {};
    UnsealedFiles with_old(world.disk(), key_of(1));
    UnsealedFiles with_new(world.disk(), key_of(2));
    const bool old_opens = static_cast<bool>(load_tensor_file(with_old, kPath, std::nullopt, 1));
    const bool new_opens = static_cast<bool>(load_tensor_file(with_new, kPath, std::nullopt, 1));
    EXPECT_TRUE(old_opens || new_opens) << "seed " << seed;
    EXPECT_TRUE(!done || new_opens) << "seed " << seed;
  }
}

TEST_F(SealedRekey, WhatCannotBeRekeyedIsSaid) {
  const auto why = [&](unsigned char old, unsigned char fresh) {
    const Status done = rekey_sealed_file(disk(), kPath, key_of(old), key_of(fresh), world_.random());
    return done ? "" : done.error().message();
  };
  save(few_sealed(), {});
  EXPECT_NE(why(1, 2).find("not encrypted"), std::string::npos);
  save(few_sealed(), {.key = std::nullopt, .level = 1});
  EXPECT_NE(why(1, 2).find("not encrypted"), std::string::npos);
  save(few_sealed(), kEncrypted);
  EXPECT_NE(why(3, 2).find("give the right key"), std::string::npos);
  EXPECT_NE(why(1, 1).find("the new key is the old one"), std::string::npos);
  Bytes damaged = content();
  damaged[4096] ^= std::byte{1};  // the table
  put(damaged);
  EXPECT_NE(why(1, 2).find("damaged"), std::string::npos);
}

TEST_F(SealedRekey, FullSlotsAreSaid) {
  save(few_sealed(), kEncrypted);
  const auto file = disk().open(kPath);
  const auto reader = SealedHeadReader::open(**file);
  const auto data_key = (*reader)->data_key(key_of(1));
  Bytes bytes = content();
  for (unsigned char i = 1; i < kKeySlots; ++i) {
    const unsigned char owner = static_cast<unsigned char>(i + 1);
    const Bytes slot = format_slot(wrap_key(**data_key, key_of(owner), (*reader)->head(), world_.random()));
    std::copy(slot.begin(), slot.end(), bytes.begin() + static_cast<std::ptrdiff_t>(slot_offset((*reader)->head(), i)));
  }
  put(bytes);
  for (unsigned char key = 1; key <= kKeySlots; ++key) EXPECT_EQ(why_refused(key_of(key)), "");
  const Status full = rekey_sealed_file(disk(), kPath, key_of(1), key_of(9), world_.random());
  ASSERT_FALSE(full);
  EXPECT_NE(full.error().message().find("all key slots are taken"), std::string::npos);
  ASSERT_TRUE(rekey_sealed_file(disk(), kPath, key_of(4), key_of(1), world_.random())) << "only frees a slot";
  ASSERT_TRUE(rekey_sealed_file(disk(), kPath, key_of(1), key_of(9), world_.random()));
  expect_same(*load(key_of(9)), few_sealed());
}

}  // namespace
}  // namespace holdfast::store
