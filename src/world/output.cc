#include "world/output.h"

#include <fcntl.h>

#include <array>
#include <cerrno>

#include "world/os_error.h"

namespace holdfast::world {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{64} << 10;
constexpr int kLastChunksMax = 32;  // more than a pipe holds; a helper that goes on writing must not keep us here

}  // namespace

Result<OutputEnds> open_output(const OutputSpec& spec) {
  OutputEnds ends;
  Fd file;
  if (spec.file) {
    file.reset(::open(spec.file->c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!file) return os_error(errno, *spec.file);
  }
  if (!spec.to_callback) {
    ends.child = std::move(file);
    return ends;
  }
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return os_error(errno, "make a pipe");
  ends.ours.reset(pipe[0]);
  ends.child.reset(pipe[1]);
  ends.log_file = std::move(file);
  return ends;
}

Output::Output(RealLoop& loop, Fd reading_end, Fd log_file, Receiver receiver)
    : pipe_(loop.context(), reading_end.release()), receiver_(std::move(receiver)) {
  ::fcntl(pipe_.native_handle(), F_SETFL, O_NONBLOCK);
  if (log_file) log_file_ = std::make_unique<LogFile>(loop, std::move(log_file));
}

void Output::wait() {
  // Waits for data instead of reading it ahead: `finish` must find in the pipe all that was not delivered.
  pipe_.async_wait(asio::posix::descriptor_base::wait_read,
                   [self = shared_from_this()](const asio::error_code& failure) {
                     if (failure || !self->pipe_.is_open()) return;
                     self->read_once();
                     if (self->pipe_.is_open()) self->wait();
                   });
}

bool Output::read_once() {
  std::array<std::byte, kChunkBytes> chunk;
  const ssize_t got = ::read(pipe_.native_handle(), chunk.data(), chunk.size());
  if (got < 0) return errno == EINTR;
  if (got == 0) {
    pipe_.close();
    return false;
  }
  const BytesView bytes = BytesView(chunk).first(static_cast<std::size_t>(got));
  if (log_file_) log_file_->append(bytes);
  if (receiver_) receiver_(bytes);
  return pipe_.is_open();
}

void Output::finish() {
  for (int i = 0; i < kLastChunksMax && pipe_.is_open() && read_once(); ++i) continue;
  if (pipe_.is_open()) pipe_.close();
  receiver_ = nullptr;
  log_file_.reset();
}

}  // namespace holdfast::world
