// A child's output stream: where the child writes, and what we do with what arrives.
#pragma once

#include <asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>

#include "world/fd.h"
#include "world/log_file.h"
#include "world/processes.h"
#include "world/real_loop.h"

namespace holdfast::world {

struct OutputEnds {
  Fd child;     ///< for the child; none: it keeps ours
  Fd ours;      ///< the reading end, where we read
  Fd log_file;  ///< what we read is to be appended here
};

Result<OutputEnds> open_output(const OutputSpec& spec);

/// Shared with the asio handler that waits for data.
class Output : public std::enable_shared_from_this<Output> {
 public:
  using Receiver = std::function<void(BytesView)>;

  Output(RealLoop& loop, Fd reading_end, Fd log_file, Receiver receiver);
  void start() { wait(); }
  /// Delivers what is in the pipe now and closes it: whoever else holds its other end is not waited for.
  void finish();

 private:
  void wait();
  /// One read. False where there is nothing (more) to read; closes at the end of the stream.
  bool read_once();

  asio::posix::stream_descriptor pipe_;
  std::unique_ptr<LogFile> log_file_;
  Receiver receiver_;
};

}  // namespace holdfast::world
