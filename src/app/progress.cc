#include "app/progress.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "app/text_table.h"

namespace holdfast::app {
namespace {

constexpr world::Nanos kQuiet = std::chrono::milliseconds(500);
constexpr world::Nanos kBetween = std::chrono::milliseconds(100);

class CountedFile final : public world::ReadableFile {
 public:
  CountedFile(std::unique_ptr<world::ReadableFile> file, Progress& progress)
      : file_(std::move(file)), progress_(progress) {}
  std::uint64_t size() const override { return file_->size(); }
  Status read_at(std::uint64_t offset, std::span<std::byte> out) override {
    Status done = file_->read_at(offset, out);
    if (done) progress_.add(out.size());
    return done;
  }
  Status read_blocks(std::span<const world::BlockRead> blocks, unsigned threads,
                     const std::function<Status(std::size_t)>& arrived) override {
    return file_->read_blocks(blocks, threads, [&](std::size_t i) {
      progress_.add(blocks[i].into.size());
      return arrived(i);
    });
  }

  bool checked() const override { return file_->checked(); }

 private:
  std::unique_ptr<world::ReadableFile> file_;
  Progress& progress_;
};

}  // namespace

std::string progress_text(const std::string& doing, std::uint64_t done, std::uint64_t total, world::Nanos elapsed) {
  const double seconds = std::chrono::duration<double>(elapsed).count();
  const double share = total == 0 ? 1 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  std::array<char, 16> percent{};
  std::snprintf(percent.data(), percent.size(), "%3.0f %%", share * 100);
  std::string text =
      doing + "  " + percent.data() + "  " + size_text(std::min(done, total)) + " of " + size_text(total);
  if (seconds > 0) text += "  " + size_text(static_cast<std::uint64_t>(static_cast<double>(done) / seconds)) + "/s";
  return text;
}

Progress::Progress(world::Clock& clock) : clock_(clock), shown_(::isatty(STDERR_FILENO) == 1) {}

void Progress::begin(std::string doing, std::uint64_t total) {
  const std::lock_guard lock(mutex_);
  doing_ = std::move(doing);
  total_ = total;
  done_ = 0;
  begun_ = drawn_ = clock_.steady();
  running_ = shown_;
}

void Progress::add(std::uint64_t bytes) {
  done_ += bytes;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || !running_) return;
  const world::Nanos now = clock_.steady();
  if (now - begun_ < kQuiet || now - drawn_ < kBetween) return;
  draw(now);
}

void Progress::draw(world::Nanos now) {
  drawn_ = now;
  on_screen_ = true;
  std::fprintf(stderr, "\r%s\033[K", progress_text(doing_, done_, total_, now - begun_).c_str());
  std::fflush(stderr);
}

void Progress::end() {
  const std::lock_guard lock(mutex_);
  if (on_screen_) std::fprintf(stderr, "\r\033[K");
  running_ = on_screen_ = false;
}

Result<std::unique_ptr<world::ReadableFile>> CountedFiles::open(const std::string& name) {
  auto file = files_.open(name);
  if (!file) return std::move(file).error();
  return std::unique_ptr<world::ReadableFile>(std::make_unique<CountedFile>(*std::move(file), progress_));
}

}  // namespace holdfast::app
