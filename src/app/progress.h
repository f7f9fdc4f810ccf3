// How far long work over many bytes has come, on one line of a terminal.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "world/clock.h"
#include "world/files.h"

namespace holdfast::app {

/// "copying  45 %  1.20 GB of 2.65 GB  812.00 MB/s".
std::string progress_text(const std::string& doing, std::uint64_t done, std::uint64_t total, world::Nanos elapsed);

/// Shown on standard error where that is a terminal, and only once the work has taken half a second; taken away by
/// `end`. Thread-safe.
class Progress {
 public:
  /// `clock` outlives it.
  explicit Progress(world::Clock& clock);
  ~Progress() { end(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// From now on bytes count, towards `total`.
  void begin(std::string doing, std::uint64_t total);
  void add(std::uint64_t bytes);
  void end();

 private:
  void draw(world::Nanos now);

  world::Clock& clock_;
  const bool shown_;
  std::mutex mutex_;
  std::string doing_;
  std::uint64_t total_ = 0;
  std::atomic<std::uint64_t> done_ = 0;
  world::Nanos begun_{};
  world::Nanos drawn_{};
  bool running_ = false;
  bool on_screen_ = false;
};

/// Tells `progress` of every byte that is read from `files`. Both outlive it and the files it opened.
class CountedFiles final : public world::FileSource {
 public:
  CountedFiles(world::FileSource& files, Progress& progress) : files_(files), progress_(progress) {}
  Result<std::unique_ptr<world::ReadableFile>> open(const std::string& name) override;

 private:
  world::FileSource& files_;
  Progress& progress_;
};

}  // namespace holdfast::app
