#include "world/remote_file.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>

#include "world/http_judge.h"
#include "world/parallel.h"

namespace holdfast::world {
namespace {

using Then = HttpVerdict::Then;

/// By what one state of a file is told from another.
struct Pin {
  std::uint64_t size = 0;
  std::string etag;
  std::string modified;
  bool by_ranges = true;  ///< false: the server sends it whole whatever was asked for
};

std::string range_header(std::uint64_t begin, std::uint64_t end) {
  return "Range: bytes=" + std::to_string(begin) + "-" + std::to_string(end - 1);
}

Error changed(const std::string& name) { return {Code::Conflict, name + ": changed while it was read; load it again"}; }

Status check_encoding(const HttpHead& head, const std::string& name) {
  const std::string_view encoding = head.header("content-encoding");
  if (encoding.empty() || encoding == "identity") return Ok{};
  return Error(Code::BadInput,
               name + ": the server sends it encoded (" + printable(encoding) + "); have it served as it is");
}

/// Whether an answer holds the range that it says.
bool holds(const HttpHead& head, const ContentRange& range) {
  const auto length = parse_count(head.header("content-length"));
  return !length || *length == range.end - range.begin;
}

/// The first request: the file's start and its Pin.
class Opening final : public HttpExchange {
 public:
  Opening(HttpRequest request, std::string name, std::uint64_t bytes_max)
      : request_(std::move(request)), name_(std::move(name)), bytes_max_(bytes_max) {}

  HttpRequest request() override {
    HttpRequest request = request_;
    request.headers.push_back(range_header(0, bytes_max_));
    start_.clear();
    size_.reset();
    return request;
  }

  Status take_head(const HttpHead& head) override {
    if (Status plain = check_encoding(head, name_); !plain) return plain;
    pin_.etag = head.header("etag");
    pin_.modified = head.header("last-modified");
    pin_.by_ranges = head.status() == 206;
    size_ = parse_count(head.header("content-length"));
    if (!pin_.by_ranges) return Ok{};
    const auto range = parse_content_range(head.header("content-range"));
    if (!range || range->begin != 0 || range->end != std::min(range->size, bytes_max_) || !holds(head, *range)) {
      return Error(Code::Unavailable,
                   name_ + ": asked for its start, got \"" + printable(head.header("content-range")) + "\"");
    }
    size_ = range->size;
    return Ok{};
  }

  Result<bool> take_body(BytesView bytes) override {
    const std::size_t wanted = std::min<std::uint64_t>(bytes.size(), bytes_max_ - start_.size());
    start_.insert(start_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(wanted));
    return pin_.by_ranges || start_.size() < bytes_max_ || wanted == bytes.size();
  }

  HttpVerdict judge(const HttpTry& attempt) override {
    const auto range = parse_content_range(attempt.head.header("content-range"));
    if (attempt.head.status() == 416 && range && range->size == 0) {  // no range of an empty file can be had
      size_ = 0;
      return {};
    }
    HttpVerdict verdict = judge_try(attempt, name_);
    if (attempt.against && attempt.against->code() == Code::Unavailable) verdict.then = Then::RetryUnlikely;
    if (verdict.then != Then::Done) return verdict;
    const bool cut = !pin_.by_ranges && start_.size() == bytes_max_;
    if (!size_ && !cut) size_ = start_.size();  // came whole, without a word of how long it would be
    if (!size_) {
      return {Then::Fail, Error(Code::BadInput, name_ + ": the server does not tell its size; fetch it to a disk"), {}};
    }
    if (start_.size() < std::min(*size_, bytes_max_)) {
      return {Then::Retry, Error(Code::Unavailable, name_ + ": the answer broke off"), {}};
    }
    return verdict;
  }

  Pin pin() const {
    Pin pin = pin_;
    pin.size = size_.value_or(0);
    return pin;
  }
  Bytes take_start() && { return std::move(start_); }

 private:
  HttpRequest request_;
  std::string name_;
  std::uint64_t bytes_max_;
  Pin pin_;
  std::optional<std::uint64_t> size_;
  Bytes start_;
};

/// What all ranges of one call share.
struct Reading {
  const HttpRequest& request;
  const std::string& name;
  const Pin& pin;
  std::span<const BlockRead> blocks;
  const std::function<Status(std::size_t)>& arrived;
};

/// One range, straight into its blocks; a next try goes on where the last one broke off.
class RangeRead final : public HttpExchange {
 public:
  RangeRead(const Reading& reading, const Range& range)
      : reading_(reading), range_(range), next_block_(range.first_block), reached_(range.begin) {}

  HttpRequest request() override {
    HttpRequest request = reading_.request;
    if (reading_.pin.by_ranges) request.headers.push_back(range_header(reached_, range_.end));
    // If-Match is for strong tags alone: a weak one never matches.
    if (reading_.pin.etag.starts_with('"')) request.headers.push_back("If-Match: " + reading_.pin.etag);
    return request;
  }

  Status take_head(const HttpHead& head) override {
    const Pin& pin = reading_.pin;
    if (Status plain = check_encoding(head, reading_.name); !plain) return plain;
    const bool same_tag = head.header("etag") == pin.etag;
    if (!same_tag || (pin.etag.empty() && head.header("last-modified") != pin.modified)) return changed(reading_.name);
    skip_ = 0;
    answer_end_ = range_.end;
    if (head.status() != 206) {  // the whole file, though a part was asked for
      const auto size = parse_count(head.header("content-length"));
      if (size && *size != pin.size) return changed(reading_.name);
      skip_ = reached_;
      return Ok{};
    }
    const auto range = parse_content_range(head.header("content-range"));
    if (!range || range->begin != reached_ || range->end > range_.end || !holds(head, *range)) {
      return Error(Code::Unavailable, reading_.name + ": asked for bytes " + std::to_string(reached_) + "-" +
                                          std::to_string(range_.end - 1) + ", got \"" +
                                          printable(head.header("content-range")) + "\"");
    }
    if (range->size != pin.size) return changed(reading_.name);
    answer_end_ = range->end;
    return Ok{};
  }

  Result<bool> take_body(BytesView bytes) override {
    const std::size_t skipped = std::min<std::uint64_t>(bytes.size(), skip_);
    skip_ -= skipped;
    bytes = bytes.subspan(skipped);
    const bool surplus = bytes.size() > answer_end_ - reached_;
    if (surplus) bytes = bytes.first(answer_end_ - reached_);
    while (!bytes.empty()) {
      const BlockRead& block = reading_.blocks[next_block_];
      if (reached_ < block.offset) {  // a gap between blocks
        const std::size_t gap = std::min<std::uint64_t>(bytes.size(), block.offset - reached_);
        bytes = bytes.subspan(gap);
        reached_ += gap;
      } else {
        const std::uint64_t filled = reached_ - block.offset;
        const std::size_t part = std::min<std::uint64_t>(bytes.size(), block.into.size() - filled);
        if (part > 0) std::memcpy(block.into.data() + filled, bytes.data(), part);
        bytes = bytes.subspan(part);
        reached_ += part;
      }
      if (Status passed = pass_full_blocks(); !passed) return std::move(passed).error();
    }
    return !surplus;
  }

  HttpVerdict judge(const HttpTry& attempt) override {
    const int status = attempt.head.status();
    if (attempt.against && attempt.against->code() == Code::Unavailable && !failed_by_caller_) {
      return {Then::RetryUnlikely, attempt.against, {}};
    }
    if (status == 412 || status == 416) return {Then::Fail, changed(reading_.name), {}};
    if (reached_ == range_.end && !attempt.against) return {};
    HttpVerdict verdict = judge_try(attempt, reading_.name);
    if (verdict.then == Then::Done) {
      return {Then::Retry, Error(Code::Unavailable, reading_.name + ": the answer broke off"), {}};
    }
    return verdict;
  }

  /// Blocks without bytes are whole as they are.
  Status pass_full_blocks() {
    while (next_block_ < range_.end_block) {
      const BlockRead& block = reading_.blocks[next_block_];
      if (reached_ < block.offset + block.into.size()) return Ok{};
      if (Status taken = reading_.arrived(next_block_); !taken) {
        failed_by_caller_ = true;
        return taken;
      }
      ++next_block_;
    }
    return Ok{};
  }

 private:
  const Reading& reading_;
  Range range_;
  std::size_t next_block_;
  std::uint64_t reached_;         ///< the first byte of the file that is not where it belongs
  std::uint64_t skip_ = 0;        ///< of this answer, before what was asked for
  std::uint64_t answer_end_ = 0;  ///< where in the file this answer ends
  bool failed_by_caller_ = false;
};

class RemoteFile final : public ReadableFile {
 public:
  RemoteFile(HttpClient& client, HttpRequest request, std::string name, const RemoteFilePolicy& policy, Pin pin,
             Bytes start)
      : client_(client),
        request_(std::move(request)),
        name_(std::move(name)),
        policy_(policy),
        pin_(std::move(pin)),
        start_(std::move(start)) {
    if (!pin_.by_ranges) {  // each request gets it all: so one for everything, on one connection
      policy_.ranges.connections = 1;
      policy_.ranges.range_bytes = policy_.ranges.range_bytes_min = policy_.ranges.gap_bytes_max = pin_.size;
    }
  }

  std::uint64_t size() const override { return pin_.size; }

  Status read_at(std::uint64_t offset, std::span<std::byte> out) override {
    const BlockRead block{offset, out};
    return read_blocks({&block, 1}, 1, [](std::size_t) { return Status(Ok{}); });
  }

  Status read_blocks(std::span<const BlockRead> blocks, unsigned threads,
                     const std::function<Status(std::size_t)>& arrived) override {
    for (const BlockRead& block : blocks) {
      if (block.offset > pin_.size || block.into.size() > pin_.size - block.offset) {
        return Error(Code::Corrupt, name_ + ": ends before byte " + std::to_string(block.offset + block.into.size()));
      }
    }
    std::size_t known = 0;
    for (; known < blocks.size() && in_start(blocks[known]); ++known) {
      const BlockRead& block = blocks[known];
      if (!block.into.empty()) std::memcpy(block.into.data(), start_.data() + block.offset, block.into.size());
      if (Status taken = arrived(known); !taken) return taken;
    }
    if (known == blocks.size()) return Ok{};
    return fetch(blocks.subspan(known), threads, [&](std::size_t i) { return arrived(known + i); });
  }

 private:
  bool in_start(const BlockRead& block) const {
    return block.into.empty() || block.offset + block.into.size() <= start_.size();
  }

  Status fetch(std::span<const BlockRead> blocks, unsigned threads, const std::function<Status(std::size_t)>& arrived) {
    const Reading reading{request_, name_, pin_, blocks, arrived};
    std::vector<RangeRead> reads;
    for (const Range& range : join_blocks(blocks, policy_.ranges)) {
      if (RangeRead read(reading, range); range.begin < range.end) {
        reads.push_back(std::move(read));
      } else if (Status passed = read.pass_full_blocks(); !passed) {
        return passed;
      }
    }
    std::atomic<std::size_t> taken = 0;
    const auto next = [&]() -> HttpExchange* {
      const std::size_t i = taken++;
      return i < reads.size() ? &reads[i] : nullptr;
    };
    const std::size_t connections = std::min<std::size_t>(std::max(1U, policy_.ranges.connections), reads.size());
    const std::size_t lanes = std::clamp<std::size_t>(threads, 1, std::max<std::size_t>(1, connections));
    std::stop_source stop;
    std::mutex mutex;
    std::optional<Error> failure;
    parallel_for(static_cast<unsigned>(lanes), lanes, [&](std::size_t lane) {
      const std::size_t own = connections / lanes + (lane < connections % lanes ? 1 : 0);
      Status done = client_.run_all(static_cast<unsigned>(own), next, stop.get_token());
      if (done) return;
      stop.request_stop();
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::move(done).error();
    });
    if (failure) return *std::move(failure);
    return Ok{};
  }

  HttpClient& client_;
  HttpRequest request_;
  std::string name_;
  RemoteFilePolicy policy_;
  Pin pin_;
  Bytes start_;
};

}  // namespace

Result<std::unique_ptr<ReadableFile>> open_remote_file(HttpClient& client, HttpRequest request, std::string name,
                                                       const RemoteFilePolicy& policy) {
  Opening opening(request, name, std::max<std::uint64_t>(1, policy.head_bytes));
  if (Status opened = client.run(opening); !opened) return std::move(opened).error();
  Pin pin = opening.pin();
  return std::unique_ptr<ReadableFile>(std::make_unique<RemoteFile>(client, std::move(request), std::move(name), policy,
                                                                    std::move(pin), std::move(opening).take_start()));
}

}  // namespace holdfast::world
