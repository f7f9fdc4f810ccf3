#include "world/log_file.h"

#include <cerrno>

namespace holdfast::world {
namespace {

constexpr std::size_t kBehindBytesMax = std::size_t{8} << 20;

void write_all(int fd, BytesView bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return;
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
  }
}

}  // namespace

struct LogFile::State {
  Fd file;
  Bytes waiting;
  Bytes writing;  // the background thread's while `busy`
  bool busy = false;
};

LogFile::LogFile(RealLoop& loop, Fd file) : loop_(loop), state_(std::make_shared<State>()) {
  state_->file = std::move(file);
}

LogFile::~LogFile() = default;

void LogFile::append(BytesView bytes) {
  if (state_->waiting.size() + bytes.size() > kBehindBytesMax) return;
  state_->waiting.insert(state_->waiting.end(), bytes.begin(), bytes.end());
  if (!state_->busy) write_out(loop_, state_);
}

void LogFile::write_out(RealLoop& loop, const std::shared_ptr<State>& state) {
  state->busy = true;
  state->writing.clear();
  state->writing.swap(state->waiting);
  loop.background([state] { write_all(state->file.get(), state->writing); },
                  [&loop, state] {
                    state->busy = false;
                    if (!state->waiting.empty()) write_out(loop, state);
                  });
}

}  // namespace holdfast::world
