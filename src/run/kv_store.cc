#include "run/kv_store.h"

#include <algorithm>
#include <charconv>

namespace holdfast::run {

void KvStore::open(Epoch epoch) {
  epoch_ = epoch;
  values_.clear();
  std::vector<Waiter> old;
  old.swap(waiters_);
  for (const Waiter& waiter : old)
    reply_(waiter.worker, KvReply{.id = waiter.id, .status = KvStatus::Closed, .value = {}});
}

void KvStore::serve(world::Nanos now, WorkerId worker, const KvRequest& request) {
  if (request.epoch != epoch_ || request.keys.empty()) {
    reply_(worker, KvReply{.id = request.id, .status = KvStatus::Closed, .value = {}});
    return;
  }
  if (request.op == KvOp::Get && request.timeout_ms > 0 && !values_.contains(request.keys.front())) {
    const auto patience = std::chrono::milliseconds(std::min<std::int64_t>(request.timeout_ms, 86'400'000));
    waiters_.push_back(Waiter{worker, request.id, request.keys.front(), now + patience});
    return;
  }
  reply_(worker, run(request));
  if (request.op == KvOp::Set || request.op == KvOp::Add) wake(request.keys.front());
}

KvReply KvStore::run(const KvRequest& request) {
  const std::string& key = request.keys.front();
  KvReply reply{.id = request.id, .status = KvStatus::Ok, .value = {}};
  const bool room = values_.size() < policy_.keys_max || values_.contains(key);
  switch (request.op) {
    case KvOp::Set:
      if (!room || request.value.size() > policy_.value_bytes_max) {
        reply.status = KvStatus::Closed;
      } else {
        values_[key] = request.value;
      }
      break;
    case KvOp::Get:
      if (const auto found = values_.find(key); found != values_.end()) {
        reply.value = found->second;
      } else {
        reply.status = KvStatus::Missing;
      }
      break;
    case KvOp::Add: {
      std::int64_t number = 0;
      if (const auto found = values_.find(key); found != values_.end()) {
        std::from_chars(found->second.data(), found->second.data() + found->second.size(), number);
      }
      reply.number =
          static_cast<std::int64_t>(static_cast<std::uint64_t>(number) + static_cast<std::uint64_t>(request.number));
      if (room) values_[key] = std::to_string(reply.number);
      break;
    }
    case KvOp::Check:
      reply.number = std::all_of(request.keys.begin(), request.keys.end(),
                                 [&](const std::string& each) { return values_.contains(each); });
      break;
    case KvOp::Delete: reply.number = static_cast<std::int64_t>(values_.erase(key)); break;
  }
  return reply;
}

void KvStore::wake(const std::string& key) {
  const auto found = values_.find(key);
  if (found == values_.end()) return;
  std::erase_if(waiters_, [&](const Waiter& waiter) {
    if (waiter.key != key) return false;
    reply_(waiter.worker, KvReply{.id = waiter.id, .status = KvStatus::Ok, .value = found->second});
    return true;
  });
}

void KvStore::tick(world::Nanos now) {
  std::erase_if(waiters_, [&](const Waiter& waiter) {
    if (now < waiter.deadline) return false;
    reply_(waiter.worker, KvReply{.id = waiter.id, .status = KvStatus::TimedOut, .value = {}});
    return true;
  });
}

void KvStore::forget(WorkerId worker) {
  std::erase_if(waiters_, [&](const Waiter& waiter) { return waiter.worker == worker; });
}

}  // namespace holdfast::run
