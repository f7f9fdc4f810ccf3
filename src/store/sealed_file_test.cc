#include "store/sealed_file.h"

#include <unistd.h>

#include "sim/sim_world.h"
#include "store/model_copy.h"
#include "store/sealed_head.h"
#include "store/test_sealed.h"
#include "world/real_world.h"

namespace holdfast::store {
namespace {

class SealedFile : public SealedTest {
 protected:
  world::World& world() override { return world_; }
  sim::SimWorld world_{1};
};

constexpr std::size_t kMiB = 1 << 20;

const std::vector<Sealing> kAllWays = {
    {.key = key_of(1), .level = 0}, {.key = std::nullopt, .level = 1}, {.key = key_of(1), .level = 3}};

TEST_F(SealedFile, IsReadAsItWasWrittenWhateverItsSize) {
  for (const Sealing& how : kAllWays) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kMiB - 1, kMiB, kMiB + 1, 2 * kMiB, 5 * kMiB + 77}) {
      SealedTensors tensors;
      tensors.add("a", size).add("b", size / 2 + 3);
      save(tensors, how);
      const auto loaded = load(how.key);
      ASSERT_TRUE(loaded) << loaded.error().message();
      EXPECT_EQ(loaded->tensors.size(), 2u);
      EXPECT_EQ(loaded->file.header.metadata, (std::map<std::string, std::string>{{"k", "v"}}));
      EXPECT_TRUE(loaded->file.checked);
      expect_same(*loaded, tensors);
      UnsealedFiles files(disk(), how.key);
      EXPECT_TRUE(verify_tensor_file(files, kPath, 1));
      const auto some = load(how.key, {{"b"}});
      ASSERT_TRUE(some);
      expect_same(*some, tensors);
    }
  }
}

TEST_F(SealedFile, AFileWithoutTensorsIsSealedToo) {
  for (const Sealing& how : kAllWays) {
    save(SealedTensors(), how);
    const auto loaded = load(how.key);
    ASSERT_TRUE(loaded) << loaded.error().message();
    EXPECT_TRUE(loaded->tensors.empty());
  }
}

// A header above a chunk: many tensors with long names.
TEST_F(SealedFile, AHeaderOfSeveralChunksIsSealedToo) {
  SealedTensors tensors;
  for (int i = 0; i < 40; ++i) tensors.add(std::string(40'000, 'n') + std::to_string(i), 100);
  for (const Sealing& how : kAllWays) {
    save(tensors, how);
    const auto loaded = load(how.key);
    ASSERT_TRUE(loaded) << loaded.error().message();
    EXPECT_EQ(loaded->tensors.size(), 40u);
    expect_same(*loaded, tensors);
  }
}

// The simulated disk is for one thread; the real one for many.
TEST_F(SealedFile, ManyThreadsWriteAndReadTheSame) {
  const auto real = world::make_real_world();
  const std::string path = testing::TempDir() + "holdfast-sealed-" + std::to_string(::getpid());
  SealedTensors tensors;
  for (int i = 0; i < 9; ++i) tensors.add(std::string(1, static_cast<char>('a' + i)), 3 * kMiB - 1000);
  for (const Sealing& how : kAllWays) {
    SealedFiles target(real->disk(), how, real->random());
    ASSERT_TRUE(save_tensor_file(target, path, tensors.list(), {}, 4));
    UnsealedFiles files(real->disk(), how.key);
    const auto whole = load_tensor_file(files, path, std::nullopt, 4);
    const auto some = load_tensor_file(files, path, {{"a", "h"}}, 4);
    EXPECT_TRUE(verify_tensor_file(files, path, 4));
    EXPECT_TRUE(real->disk().remove(path));
    ASSERT_TRUE(whole && some);
    expect_same(*whole, tensors);
    expect_same(*some, tensors);
  }
}

TEST_F(SealedFile, CompressionShrinksWhatShrinksAndKeepsTheRestAsItIs) {
  SealedTensors tensors;
  tensors.add("zeros", 4 * kMiB).add("noise", 4 * kMiB);
  save(tensors, {.key = std::nullopt, .level = 1});
  const std::size_t size = content().size();
  EXPECT_LT(size, 4 * kMiB + kMiB / 2);
  EXPECT_GT(size, 4 * kMiB);
}

// Other programs open it, and can't take it for weights.
TEST_F(SealedFile, IsASafetensorsFileWithOneTensorOfBytes) {
  for (const Sealing& how : kAllWays) {
    save(few_sealed(), how);
    const auto outer = read_tensor_file(disk(), kPath);
    ASSERT_TRUE(outer) << outer.error().message();
    ASSERT_EQ(outer->header.tensors.size(), 1u);
    EXPECT_EQ(outer->header.tensors[0].name, "holdfast.sealed");
    EXPECT_EQ(outer->header.tensors[0].dtype, "U8");
    EXPECT_EQ(outer->header.metadata.count("format"), 0u);
  }
}

TEST_F(SealedFile, NothingOfAnEncryptedFileShows) {
  SealedTensors tensors;
  tensors.add("secret_layer_name", 2 * kMiB);
  save(tensors, {.key = key_of(1), .level = 0});
  const Bytes sealed = content();
  EXPECT_EQ(as_text(sealed).find("secret_layer_name"), std::string::npos);
  EXPECT_EQ(as_text(sealed).find("crc32c"), std::string::npos);
  const BytesView part = tensors.list()[0].bytes.subspan(5000, 64);
  EXPECT_EQ(as_text(sealed).find(as_text(part)), std::string::npos);
  const Bytes before = sealed;
  save(tensors, {.key = key_of(1), .level = 0});
  EXPECT_FALSE(std::equal(before.end() - 1000, before.end(), content().end() - 1000))
      << "a data key of its own each time";
}

// S35
TEST_F(SealedFile, SavingLeavesTheTensorsAsTheyAre) {
  SealedTensors tensors;
  tensors.add("a", 3 * kMiB + 5).add("b", 2 * kMiB);
  std::vector<Bytes> before;
  for (const TensorData& each : tensors.list()) before.emplace_back(each.bytes.begin(), each.bytes.end());
  for (const Sealing& how : kAllWays) save(tensors, how);
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(std::equal(before[i].begin(), before[i].end(), tensors.list()[i].bytes.begin()));
  }
}

TEST_F(SealedFile, AWrongOrMissingKeyIsNamedAsSuch) {
  save(few_sealed(), {.key = key_of(1), .level = 0});
  const std::string ours = key_id_text(key_of(1).id());
  EXPECT_EQ(why_refused(key_of(1)), "");
  const std::string missing = why_refused(std::nullopt);
  EXPECT_NE(missing.find("encrypted for key " + ours + " and no key was given"), std::string::npos) << missing;
  EXPECT_NE(missing.find(kPath), std::string::npos);
  const std::string wrong = why_refused(key_of(2));
  EXPECT_NE(wrong.find(ours), std::string::npos) << wrong;
  EXPECT_NE(wrong.find("key " + key_id_text(key_of(2).id()) + " was given"), std::string::npos) << wrong;
}

// Who can write the file but has no key must not pass off weights of his own.
TEST_F(SealedFile, AFileThatIsNotEncryptedIsRefusedWhereAKeyIsGiven) {
  save(few_sealed(), {});
  EXPECT_EQ(why_refused(std::nullopt), "");
  EXPECT_NE(why_refused(key_of(1)).find("is not encrypted"), std::string::npos);
  save(few_sealed(), {.key = std::nullopt, .level = 1});
  EXPECT_EQ(why_refused(std::nullopt), "");
  EXPECT_NE(why_refused(key_of(1)).find("is not encrypted"), std::string::npos);
}

TEST_F(SealedFile, TellsOfItselfWithoutAKey) {
  save(few_sealed(), {.key = key_of(1), .level = 1});
  const auto about = read_sealed_about(disk(), kPath);
  ASSERT_TRUE(about && *about);
  EXPECT_TRUE((*about)->encrypted && (*about)->compressed);
  EXPECT_EQ((*about)->keys, std::vector<std::string>{key_id_text(key_of(1).id())});
  save(few_sealed(), {});
  EXPECT_FALSE(*read_sealed_about(disk(), kPath));
}

TEST_F(SealedFile, OneTensorIsReadWithoutTheOthers) {
  SealedTensors tensors;
  tensors.add("a", 4 * kMiB).add("b", 4 * kMiB);
  save(tensors, {.key = key_of(1), .level = 0});
  Bytes damaged = content();
  damaged[damaged.size() - 1] ^= std::byte{1};  // in b
  put(damaged);
  const auto a = load(key_of(1), {{"a"}});
  ASSERT_TRUE(a) << a.error().message();
  expect_same(*a, tensors);
  const auto b = load(key_of(1), {{"b"}});
  ASSERT_FALSE(b);
  EXPECT_NE(b.error().message().find("sealed chunk 8 (bytes "), std::string::npos) << b.error().message();
}

TEST_F(SealedFile, AMachineThatDiesAtAnyCallLeavesTheOldOrTheNewFile) {
  SealedTensors newer;
  newer.add("n", 40);
  for (const Sealing& how : kAllWays) {
    for (std::uint64_t calls = 0;; ++calls) {
      sim::SimWorld world(calls);
      ASSERT_TRUE(world.disk().make_dirs("/models"));
      ASSERT_TRUE(world.disk().sync_dir("/"));
      SealedFiles target(world.disk(), how, world.random());
      ASSERT_TRUE(save_tensor_file(target, kPath, few_sealed().list(), {}, 1));
      world.crash_after(calls);
      const bool acknowledged = static_cast<bool>(save_tensor_file(target, kPath, newer.list(), {}, 1));
      world.restart();
      UnsealedFiles files(world.disk(), how.key);
      const auto loaded = load_tensor_file(files, kPath, std::nullopt, 1);
      ASSERT_TRUE(loaded) << loaded.error().message();
      const bool is_new = loaded->tensors.size() == 1;
      EXPECT_TRUE(is_new || !acknowledged) << "after " << calls << " calls";
      const SealedTensors before = few_sealed();
      expect_same(*loaded, is_new ? newer : before);
      if (acknowledged) break;
    }
  }
}

TEST_F(SealedFile, AFullDiskLosesNothing) {
  save(few_sealed(), kAllWays[0]);
  const Bytes before = content();
  world_.node().disk().policy.bytes_max = world_.node().disk().bytes_used() + 5000;
  for (const Sealing& how : kAllWays) {
    SealedFiles target(disk(), how, world_.random());
    SealedTensors large;
    large.add("a", 9 * kMiB).add("b", 9 * kMiB);
    const auto done = save_tensor_file(target, kPath, large.list(), {}, 1);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), Code::Unavailable);
  }
  EXPECT_EQ(content(), before);
  EXPECT_EQ(disk().list("/models")->size(), 1u);
}

TEST_F(SealedFile, CopiesGoFromPlainToSealedAndBackToTheSameBytes) {
  SealedTensors tensors;
  tensors.add("a", 6 * kMiB + 9).add("b", 3 * kMiB);
  save(tensors, {}, "/models/plain");
  const Bytes plain = content("/models/plain");
  for (const Sealing& how : kAllWays) {
    SealedFiles sealing(disk(), how, world_.random());
    ASSERT_TRUE(copy_tensor_file(*OpenTensorFile::open(disk(), "/models/plain"), sealing, kPath, 1));
    EXPECT_NE(content(), plain);
    expect_same(*load(how.key), tensors);
    UnsealedFiles unsealing(disk(), how.key);
    ASSERT_TRUE(copy_tensor_file(*OpenTensorFile::open(unsealing, kPath), disk(), "/models/back", 1));
    EXPECT_EQ(content("/models/back"), plain);
  }
}

}  // namespace
}  // namespace holdfast::store
