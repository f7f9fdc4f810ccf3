#include "world/object_tree.h"

#include <gtest/gtest.h>

#include "world/s3_server_fixture.h"

namespace holdfast::world {
namespace {

using Names = std::vector<std::string>;

class ObjectTreeTest : public testing::Test {
 protected:
  S3Server server_{HOLDFAST_SERVERS "/versitygw"};
  std::unique_ptr<World> world_ = make_real_world();
  HttpClient client_{world_->random(), {}};
  std::unique_ptr<ObjectStore> store_ = make_s3_store(client_, world_->random(), server_.settings(), "models", {});
  ObjectTree tree_{*store_, "s3://models/", 2};
};

TEST_F(ObjectTreeTest, PrefixesAreFolders) {
  ASSERT_TRUE(tree_.write_new("s3://models/run/a/one", as_bytes("1")));
  ASSERT_TRUE(tree_.write_new("s3://models/run/a/two", as_bytes("2")));
  ASSERT_TRUE(tree_.write_new("s3://models/run/b", as_bytes("3")));
  EXPECT_EQ(*tree_.list("s3://models/run"), (Names{"a", "b"}));
  EXPECT_EQ(*tree_.list("s3://models/run/a"), (Names{"one", "two"}));
  EXPECT_EQ(*tree_.list("s3://models"), Names{"run"});
  EXPECT_EQ(tree_.list("s3://models/none").error().code(), Code::NotFound);
  ASSERT_TRUE(tree_.remove("s3://models/run/a/one"));
  ASSERT_TRUE(tree_.remove("s3://models/run/a/two"));
  ASSERT_TRUE(tree_.remove_dir("s3://models/run/a"));
  EXPECT_EQ(*tree_.list("s3://models/run"), Names{"b"});
}

TEST_F(ObjectTreeTest, OfTwoNewFilesOfOneNameTheFirstStays) {
  ASSERT_TRUE(tree_.write_new("s3://models/a", as_bytes("first")));
  const Status second = tree_.write_new("s3://models/a", as_bytes("second"));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::Conflict);
  EXPECT_EQ(as_text(*read_file(tree_, "s3://models/a", 100)), "first");
  EXPECT_TRUE(tree_.exists("s3://models/a"));
  EXPECT_FALSE(tree_.exists("s3://models/b"));
}

TEST_F(ObjectTreeTest, AnUploadWhoseWriterDiedIsListedAndRemoved) {
  const std::uint64_t piece = tree_.piece_bytes("s3://models/run/w", std::uint64_t{20} << 20U);
  const Pieces pieces{.head = 0, .piece = piece, .total = 2 * piece};
  auto begun = tree_.begin("s3://models/run/w", "", pieces);
  ASSERT_TRUE(begun) << begun.error().message();
  const Bytes bytes(piece);
  ASSERT_TRUE((*begun)->write(0, bytes));
  EXPECT_EQ(*tree_.list("s3://models/run"), Names{"w.partial"});
  ASSERT_TRUE(tree_.remove("s3://models/run/w.partial"));
  EXPECT_EQ(tree_.list("s3://models/run").error().code(), Code::NotFound);
  EXPECT_FALSE((*begun)->commit()) << "it was abandoned";
}

TEST_F(ObjectTreeTest, NamesOfOtherPlacesAreRefused) {
  EXPECT_EQ(tree_.open("/etc/passwd").error().code(), Code::BadInput);
  EXPECT_EQ(tree_.open("s3://models/").error().code(), Code::BadInput);
  EXPECT_EQ(tree_.list("s3://other/a").error().code(), Code::BadInput);
}

}  // namespace
}  // namespace holdfast::world
