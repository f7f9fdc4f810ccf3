#include "store/tensor_stream.h"

#include <algorithm>
#include <map>

#include "store/data_reader.h"
#include "store/placed_tensors.h"

namespace holdfast::store {
namespace {

std::uint64_t size_of(const TensorInfo& tensor) { return tensor.end - tensor.begin; }

/// As named, each once.
Result<std::vector<TensorInfo>> in_order_of(const SafetensorsHeader& header, const std::vector<std::string>& names) {
  std::map<std::string, TensorInfo> found;
  for (TensorInfo& tensor : TRY(tensors_named(header, names), "stream")) {
    std::string name = tensor.name;
    found.emplace(std::move(name), std::move(tensor));
  }
  std::vector<TensorInfo> order;
  for (const std::string& name : names) {
    if (auto node = found.extract(name)) order.push_back(std::move(node.mapped()));
  }
  return order;
}

}  // namespace

Result<std::unique_ptr<TensorStream>> TensorStream::open(world::FileSource& files, const std::string& path,
                                                         const std::optional<std::vector<std::string>>& names,
                                                         const StreamPolicy& policy) {
  std::unique_ptr<world::ReadableFile> file = TRY(files.open(path), "open");
  TensorFile about = TRY(read_tensor_head(*file), path);
  std::vector<TensorInfo> order = about.header.tensors;
  if (names) order = TRY(in_order_of(about.header, *names), path);
  return std::unique_ptr<TensorStream>(
      new TensorStream(std::move(file), path, std::move(about), std::move(order), policy));
}

TensorStream::TensorStream(std::unique_ptr<world::ReadableFile> file, std::string path, TensorFile about,
                           std::vector<TensorInfo> order, const StreamPolicy& policy)
    : file_(std::move(file)),
      path_(std::move(path)),
      about_(std::move(about)),
      order_(std::move(order)),
      policy_(policy) {
  reader_.emplace([this] { read_ahead(); });
}

TensorStream::~TensorStream() { stop(); }

void TensorStream::stop() {
  stopped_ = true;
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

Result<std::optional<StreamedTensor>> TensorStream::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !ready_.empty() || ended_ || stopped_; });
  if (stopped_) return std::optional<StreamedTensor>();
  if (ready_.empty()) {
    if (failure_) return *failure_;
    return std::optional<StreamedTensor>();
  }
  std::optional<StreamedTensor> taken(std::move(ready_.front()));
  ready_.pop_front();
  waiting_bytes_ -= size_of(taken->tensor);
  changed_.notify_all();
  return taken;
}

std::uint64_t TensorStream::waiting_bytes() const {
  const std::lock_guard lock(mutex_);
  return waiting_bytes_;
}

void TensorStream::read_ahead() {
  DataReader reader(*file_, about_, {.threads = policy_.threads, .checked = policy_.checked, .stopped = &stopped_});
  std::optional<Error> failure;
  std::uint64_t read_bytes = policy_.first_read_bytes;
  for (std::size_t begin = 0; begin < order_.size() && !failure;) {
    const std::size_t end = batch_end(begin, read_bytes);
    const std::span<const TensorInfo> batch = std::span(order_).subspan(begin, end - begin);
    std::uint64_t bytes = 0;
    for (const TensorInfo& tensor : batch) bytes += size_of(tensor);
    if (!wait_for_room(bytes)) break;
    auto tensors = read_batch(batch, reader);
    // The tensors before the damaged one are whole, so they go first: one by one, until it is met.
    for (std::size_t i = 0; !tensors && batch.size() > 1 && i < batch.size() && !stopped_; ++i) {
      auto alone = read_batch(batch.subspan(i, 1), reader);
      if (!alone) {
        failure = alone.error();
        break;
      }
      const std::lock_guard lock(mutex_);
      ready_.push_back(std::move(alone->front()));
      changed_.notify_all();
    }
    if (!tensors) {
      if (batch.size() == 1) failure = tensors.error();
    } else {
      const std::lock_guard lock(mutex_);
      for (StreamedTensor& each : *tensors) ready_.push_back(std::move(each));
      changed_.notify_all();
    }
    begin = end;
    read_bytes = std::min(read_bytes * 2, policy_.window_bytes / 2);
  }
  const std::lock_guard lock(mutex_);
  failure_ = std::move(failure);
  ended_ = true;
  changed_.notify_all();
}

/// At least one tensor, and more while they are of no more than so many bytes in all.
std::size_t TensorStream::batch_end(std::size_t begin, std::uint64_t bytes) const {
  std::uint64_t sum = size_of(order_[begin]);
  std::size_t end = begin + 1;
  while (end < order_.size() && sum + size_of(order_[end]) <= bytes) sum += size_of(order_[end++]);
  return end;
}

/// False where the reading is to end.
bool TensorStream::wait_for_room(std::uint64_t bytes) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock,
                [&] { return stopped_ || waiting_bytes_ == 0 || waiting_bytes_ + bytes <= policy_.window_bytes; });
  waiting_bytes_ += bytes;
  return !stopped_;
}

Result<std::vector<StreamedTensor>> TensorStream::read_batch(std::span<const TensorInfo> batch,
                                                             DataReader& reader) const {
  std::vector<StreamedTensor> tensors;
  std::vector<Span> spans;
  tensors.reserve(batch.size());
  for (const TensorInfo& stored : batch) {
    const std::uint64_t size = size_of(stored);
    const std::uint64_t at = place_for(0, size, about_.header.data_begin + stored.begin);
    StreamedTensor& tensor = tensors.emplace_back(StreamedTensor{stored, AlignedBytes(at + size)});
    tensor.tensor.begin = at;
    tensor.tensor.end = at + size;
    spans.push_back({stored.begin, stored.end, tensor.memory.all().data() + at});
  }
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  TRY(reader.read(spans), path_ + ": data");
  return tensors;
}

}  // namespace holdfast::store
