// Appends to a log file without making the loop wait for the disk.
#pragma once

#include <memory>

#include "base/bytes.h"
#include "world/fd.h"
#include "world/real_loop.h"

namespace holdfast::world {

class LogFile {
 public:
  /// `loop` outlives this object.
  LogFile(RealLoop& loop, Fd file);
  /// What was appended is still written.
  ~LogFile();
  /// Bytes that the disk does not take fast enough (8 MiB behind) or at all are dropped: a log is not worth a run.
  void append(BytesView bytes);

 private:
  struct State;
  static void write_out(RealLoop& loop, const std::shared_ptr<State>& state);
  RealLoop& loop_;
  std::shared_ptr<State> state_;  // shared with the background write, which may outlast this object
};

}  // namespace holdfast::world
