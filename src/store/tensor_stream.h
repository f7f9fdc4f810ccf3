// The tensors of a file one by one, read ahead of whoever takes them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "store/aligned_bytes.h"
#include "store/tensor_file.h"
#include "world/background.h"
#include "world/files.h"

namespace holdfast::store {

struct StreamPolicy {
  std::uint64_t window_bytes = std::uint64_t{64} << 20U;     ///< read or being read, and not taken; or else one tensor
  std::uint64_t first_read_bytes = std::uint64_t{1} << 20U;  ///< reads grow from this: the first tensor comes soon
  unsigned threads = 1;
  bool checked = true;
};

/// Memory of a tensor's own.
struct StreamedTensor {
  TensorInfo tensor;  ///< `begin` and `end` count from the start of `memory`
  AlignedBytes memory;
};

/// Reads on a thread of its own, which ends with this object. One thread takes; any may stop.
class TensorStream {
 public:
  /// `names`: these alone, in this order; none: all, as they lie in the file. Errors: as load_tensor_file. `files` is
  /// not used after that, but what `open` gave is.
  static Result<std::unique_ptr<TensorStream>> open(world::FileSource& files, const std::string& path,
                                                    const std::optional<std::vector<std::string>>& names,
                                                    const StreamPolicy& policy);
  ~TensorStream();
  TensorStream(const TensorStream&) = delete;
  TensorStream& operator=(const TensorStream&) = delete;

  const TensorFile& about() const { return about_; }
  /// Blocks until the next tensor is there, every byte checked where the file has checksums; none after the last, or
  /// once stopped. Errors: Corrupt, Unavailable; the tensors before it came.
  Result<std::optional<StreamedTensor>> next();
  /// Ends the reading soon.
  void stop();
  /// Read and not taken, or being read. For tests.
  std::uint64_t waiting_bytes() const;

 private:
  TensorStream(std::unique_ptr<world::ReadableFile> file, std::string path, TensorFile about,
               std::vector<TensorInfo> order, const StreamPolicy& policy);
  void read_ahead();
  std::size_t batch_end(std::size_t begin, std::uint64_t bytes) const;
  bool wait_for_room(std::uint64_t bytes);
  Result<std::vector<StreamedTensor>> read_batch(std::span<const TensorInfo> batch, class DataReader& reader) const;

  std::unique_ptr<world::ReadableFile> file_;
  std::string path_;
  TensorFile about_;
  std::vector<TensorInfo> order_;
  StreamPolicy policy_;
  std::atomic<bool> stopped_ = false;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<StreamedTensor> ready_;
  std::uint64_t waiting_bytes_ = 0;
  bool ended_ = false;
  std::optional<Error> failure_;
  std::optional<world::Background> reader_;  ///< last: it uses all the others
};

}  // namespace holdfast::store
