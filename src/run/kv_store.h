// The store in which ranks of one epoch exchange addresses. An epoch that has closed can neither be read nor written.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "run/messages.h"
#include "world/clock.h"

namespace holdfast::run {

struct KvPolicy {
  std::size_t keys_max = 100'000;
  std::size_t value_bytes_max = std::size_t{512} << 10;
};

class KvStore {
 public:
  using Reply = std::function<void(WorkerId, const KvReply&)>;
  explicit KvStore(Reply reply, KvPolicy policy = {}) : reply_(std::move(reply)), policy_(policy) {}

  /// Everything of older epochs goes; whoever waits there is told Closed.
  void open(Epoch epoch);
  /// Answers now, or when the key comes, or when its time is over (`tick`).
  void serve(world::Nanos now, WorkerId worker, const KvRequest& request);
  void tick(world::Nanos now);
  /// `worker` is gone: nobody to answer.
  void forget(WorkerId worker);

 private:
  struct Waiter {
    WorkerId worker;
    std::uint64_t id;
    std::string key;
    world::Nanos deadline;
  };
  KvReply run(const KvRequest& request);
  void wake(const std::string& key);

  Reply reply_;
  KvPolicy policy_;
  Epoch epoch_ = 0;
  std::map<std::string, std::string> values_;
  std::vector<Waiter> waiters_;
};

}  // namespace holdfast::run
