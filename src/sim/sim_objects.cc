#include "sim/sim_objects.h"

#include <algorithm>

namespace holdfast::sim {
namespace {

constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20U;

Error refused(const std::string& what) { return {Code::Unavailable, what + ": 503 Slow Down"}; }

}  // namespace

/// An object as it was when it was opened.
class SimObject final : public world::ReadableFile {
 public:
  SimObject(SimObjects& store, std::string key, std::shared_ptr<const Bytes> bytes, std::string etag)
      : store_(store), key_(std::move(key)), bytes_(std::move(bytes)), etag_(std::move(etag)) {}

  std::uint64_t size() const override { return bytes_->size(); }
  Status read_at(std::uint64_t offset, std::span<std::byte> out) override {
    return store_.request("read " + key_, [&]() -> Status {
      const auto there = store_.objects_.find(key_);
      if (there == store_.objects_.end()) return Error(Code::NotFound, key_ + ": 404 Not Found");
      if (there->second.etag != etag_) return Error(Code::Unavailable, key_ + ": it was replaced while it was read");
      if (offset > bytes_->size() || out.size() > bytes_->size() - offset) {
        return Error(Code::Corrupt, key_ + ": ends before byte " + std::to_string(offset + out.size()));
      }
      std::copy_n(bytes_->begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
      return Ok{};
    });
  }

 private:
  SimObjects& store_;
  std::string key_;
  std::shared_ptr<const Bytes> bytes_;
  std::string etag_;
};

/// An upload in parts; one that is given up is abandoned, as far as requests still get through.
class SimUpload final : public world::NewFile {
 public:
  SimUpload(SimObjects& store, std::string name, std::string key, world::PutCondition condition)
      : store_(store), name_(std::move(name)), key_(std::move(key)), condition_(std::move(condition)) {}
  ~SimUpload() override {
    if (!committed_) (void)store_.abandon({key_, name_});
  }
  SimUpload(const SimUpload&) = delete;
  SimUpload& operator=(const SimUpload&) = delete;

  Status write(std::uint64_t index, BytesView bytes) override {
    return store_.request("write " + key_, [&]() -> Status {
      const auto upload = store_.uploads_.find(name_);
      if (upload == store_.uploads_.end()) return Error(Code::NotFound, key_ + ": no such upload");
      upload->second.parts[index] = Bytes(bytes.begin(), bytes.end());
      return Ok{};
    });
  }

  Status commit() override {
    const Status done = store_.request("commit " + key_, [&]() -> Status {
      const auto upload = store_.uploads_.find(name_);
      if (upload == store_.uploads_.end()) return Error(Code::NotFound, key_ + ": no such upload");
      Bytes whole;
      for (const auto& [index, part] : upload->second.parts) whole.insert(whole.end(), part.begin(), part.end());
      const auto put = store_.put_now(key_, std::move(whole), condition_);
      if (!put) return put.error();
      store_.uploads_.erase(upload);
      return Ok{};
    });
    committed_ = static_cast<bool>(done);
    return done;
  }

 private:
  SimObjects& store_;
  std::string name_, key_;
  world::PutCondition condition_;
  bool committed_ = false;
};

template <typename Effect>
auto SimObjects::request(const std::string& what, Effect effect) -> decltype(effect()) {
  bool lost = false;
  if (left_ == 0) return refused(what);
  if (left_ != kForever && --left_ == 0) {
    if (random_.chance(0.5)) return refused(what);
    lost = true;
  }
  if (random_.chance(policy.refused)) return refused(what);
  lost = lost || random_.chance(policy.answer_lost);
  auto outcome = effect();
  if (lost) return refused(what);
  return outcome;
}

void SimObjects::kill_after(std::uint64_t requests) { left_ = requests + 1; }

bool SimObjects::flip_byte(const std::string& key, std::uint64_t offset) {
  const auto object = objects_.find(key);
  if (object == objects_.end() || offset >= object->second.bytes->size()) return false;
  Bytes changed = *object->second.bytes;
  changed[offset] ^= std::byte{1};
  object->second.bytes = std::make_shared<const Bytes>(std::move(changed));
  return true;
}

Result<std::vector<world::ObjectInfo>> SimObjects::list(const std::string& prefix, std::size_t /*count_max*/) {
  return request("list " + prefix, [&]() -> Result<std::vector<world::ObjectInfo>> {
    std::vector<world::ObjectInfo> found;
    for (const auto& [key, object] : objects_) {
      if (key.starts_with(prefix)) found.push_back({key, object.bytes->size(), object.etag});
    }
    return found;
  });
}

Result<Bytes> SimObjects::get(const std::string& key, std::uint64_t bytes_max) {
  return request("get " + key, [&]() -> Result<Bytes> {
    const auto object = objects_.find(key);
    if (object == objects_.end()) return Error(Code::NotFound, key + ": 404 Not Found");
    if (object->second.bytes->size() > bytes_max) return Error(Code::BadInput, key + ": too large");
    return *object->second.bytes;
  });
}

Result<std::string> SimObjects::put(const std::string& key, BytesView bytes, const world::PutCondition& condition) {
  return request("put " + key, [&] { return put_now(key, Bytes(bytes.begin(), bytes.end()), condition); });
}

Result<std::string> SimObjects::put_now(const std::string& key, Bytes bytes, const world::PutCondition& condition) {
  const auto there = objects_.find(key);
  const bool other = !condition.etag.empty() && (there == objects_.end() || there->second.etag != condition.etag);
  if ((condition.absent && there != objects_.end()) || other) {
    return Error(Code::Conflict, key + ": 412 Precondition Failed");
  }
  std::string etag = "etag-" + std::to_string(++made_);
  objects_[key] = {std::make_shared<const Bytes>(std::move(bytes)), etag};
  return etag;
}

Status SimObjects::remove(const std::string& key) {
  return request("remove " + key, [&]() -> Status {
    objects_.erase(key);
    return Ok{};
  });
}

Result<std::unique_ptr<world::ReadableFile>> SimObjects::open(const std::string& key) {
  return request("open " + key, [&]() -> Result<std::unique_ptr<world::ReadableFile>> {
    const auto object = objects_.find(key);
    if (object == objects_.end()) return Error(Code::NotFound, key + ": 404 Not Found");
    return std::unique_ptr<world::ReadableFile>(
        std::make_unique<SimObject>(*this, key, object->second.bytes, object->second.etag));
  });
}

std::uint64_t SimObjects::piece_bytes(std::uint64_t /*total*/) const { return kPieceBytes; }

Result<std::unique_ptr<world::NewFile>> SimObjects::begin(const std::string& key, const world::Pieces& /*pieces*/,
                                                          const world::PutCondition& condition) {
  return request("begin " + key, [&]() -> Result<std::unique_ptr<world::NewFile>> {
    std::string name = "upload-" + std::to_string(++made_);
    uploads_[name] = {key, {}};
    return std::unique_ptr<world::NewFile>(std::make_unique<SimUpload>(*this, std::move(name), key, condition));
  });
}

Result<std::vector<world::UnfinishedObject>> SimObjects::unfinished(const std::string& prefix,
                                                                    std::size_t /*count_max*/) {
  return request("list uploads " + prefix, [&]() -> Result<std::vector<world::UnfinishedObject>> {
    std::vector<world::UnfinishedObject> found;
    for (const auto& [name, upload] : uploads_) {
      if (upload.key.starts_with(prefix)) found.push_back({upload.key, name});
    }
    return found;
  });
}

Status SimObjects::abandon(const world::UnfinishedObject& object) {
  return request("abandon " + object.key, [&]() -> Status {
    uploads_.erase(object.upload);
    return Ok{};
  });
}

}  // namespace holdfast::sim
