#include "run/kv_store.h"

#include <gtest/gtest.h>

namespace holdfast::run {
namespace {

using std::chrono::milliseconds;

class KvStoreTest : public testing::Test {
 protected:
  KvReply last(WorkerId worker) { return replies_.at(worker).back(); }
  void serve(WorkerId worker, KvRequest request, world::Nanos now = {}) { store_.serve(now, worker, request); }

  std::map<WorkerId, std::vector<KvReply>> replies_;
  KvStore store_{[this](WorkerId worker, const KvReply& reply) { replies_[worker].push_back(reply); }};
};

KvRequest set(Epoch epoch, const std::string& key, const std::string& value) {
  return {.id = 1, .epoch = epoch, .op = KvOp::Set, .keys = {key}, .value = value};
}
KvRequest get(Epoch epoch, const std::string& key, std::int64_t timeout_ms = 0) {
  return {.id = 2, .epoch = epoch, .op = KvOp::Get, .keys = {key}, .value = {}, .number = 0, .timeout_ms = timeout_ms};
}

// Behaviour 6 (pytorch #135712): a rank must not read the previous round's address.
TEST_F(KvStoreTest, Behaviour6NothingOfAnOlderEpochCanBeRead) {
  store_.open(1);
  serve(7, set(1, "addr/0", "old"));
  store_.open(2);
  serve(7, get(2, "addr/0"));
  EXPECT_EQ(last(7).status, KvStatus::Missing);
  serve(7, get(1, "addr/0"));
  EXPECT_EQ(last(7).status, KvStatus::Closed);
  serve(8, set(1, "addr/0", "late"));
  EXPECT_EQ(last(8).status, KvStatus::Closed);
  serve(7, get(2, "addr/0"));
  EXPECT_EQ(last(7).status, KvStatus::Missing);
}

TEST_F(KvStoreTest, AGetWaitsForItsKey) {
  store_.open(1);
  serve(7, get(1, "k", 1000));
  EXPECT_TRUE(replies_[7].empty());
  serve(8, set(1, "k", "v"));
  EXPECT_EQ(last(7).value, "v");
}

TEST_F(KvStoreTest, AWaitEndsWithItsTimeOrItsEpoch) {
  store_.open(1);
  serve(7, get(1, "k", 1000));
  store_.tick(milliseconds(999));
  EXPECT_TRUE(replies_[7].empty());
  store_.tick(milliseconds(1000));
  EXPECT_EQ(last(7).status, KvStatus::TimedOut);
  serve(8, get(1, "k", 1000));
  store_.open(2);
  EXPECT_EQ(last(8).status, KvStatus::Closed);
}

TEST_F(KvStoreTest, AddCountsFromZeroAndCheckWantsAllKeys) {
  store_.open(1);
  serve(7, {.id = 3, .epoch = 1, .op = KvOp::Add, .keys = {"n"}, .value = {}, .number = 5});
  serve(7, {.id = 3, .epoch = 1, .op = KvOp::Add, .keys = {"n"}, .value = {}, .number = -2});
  EXPECT_EQ(last(7).number, 3);
  serve(7, {.id = 4, .epoch = 1, .op = KvOp::Check, .keys = {"n", "m"}, .value = {}});
  EXPECT_EQ(last(7).number, 0);
  serve(7, {.id = 5, .epoch = 1, .op = KvOp::Delete, .keys = {"n"}, .value = {}});
  EXPECT_EQ(last(7).number, 1);
}

TEST_F(KvStoreTest, AnOversizedValueIsRefused) {
  store_.open(1);
  serve(7, set(1, "k", std::string((std::size_t{512} << 10) + 1, 'x')));
  EXPECT_NE(last(7).status, KvStatus::Ok);
}

}  // namespace
}  // namespace holdfast::run
