// A bucket in memory that fails as object stores do: requests that come to nothing, answers that are lost although the
// request took effect, and a process that dies between two of them. What was put lasts.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/random.h"
#include "world/object_store.h"

namespace holdfast::sim {

struct ObjectPolicy {
  double refused = 0;      ///< probability that a request fails and changes nothing
  double answer_lost = 0;  ///< that it takes effect and fails all the same
};

/// For one thread, as all of the simulator.
class SimObjects final : public world::ObjectStore {
 public:
  explicit SimObjects(std::uint64_t seed) : random_(seed) {}

  /// The process dies at its request number `requests` from now on: whether that one takes effect is chance, all later
  /// ones are refused.
  void kill_after(std::uint64_t requests);
  /// A new process: what was put is there, and uploads that the last one left.
  void restart() { left_ = kForever; }
  /// Damages one byte. False: no such object, or it is shorter.
  bool flip_byte(const std::string& key, std::uint64_t offset);

  Result<std::vector<world::ObjectInfo>> list(const std::string& prefix, std::size_t count_max) override;
  Result<Bytes> get(const std::string& key, std::uint64_t bytes_max) override;
  Result<std::string> put(const std::string& key, BytesView bytes, const world::PutCondition& condition) override;
  Status remove(const std::string& key) override;
  Result<std::unique_ptr<world::ReadableFile>> open(const std::string& key) override;
  std::uint64_t piece_bytes(std::uint64_t total) const override;
  Result<std::unique_ptr<world::NewFile>> begin(const std::string& key, const world::Pieces& pieces,
                                                const world::PutCondition& condition) override;
  Result<std::vector<world::UnfinishedObject>> unfinished(const std::string& prefix, std::size_t count_max) override;
  Status abandon(const world::UnfinishedObject& object) override;

  ObjectPolicy policy;

 private:
  friend class SimObject;
  friend class SimUpload;
  static constexpr std::uint64_t kForever = UINT64_MAX;

  struct Object {
    std::shared_ptr<const Bytes> bytes;
    std::string etag;
  };
  struct Upload {
    std::string key;
    std::map<std::uint64_t, Bytes> parts;
  };

  /// One request, whose effect is `effect`.
  template <typename Effect>
  auto request(const std::string& what, Effect effect) -> decltype(effect());
  Result<std::string> put_now(const std::string& key, Bytes bytes, const world::PutCondition& condition);

  SimRandom random_;
  std::uint64_t left_ = kForever;  ///< requests until the process dies
  std::uint64_t made_ = 0;         ///< objects and uploads so far, which gives each its name
  std::map<std::string, Object> objects_;
  std::map<std::string, Upload> uploads_;
};

}  // namespace holdfast::sim
