#include "world/fork_link.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "world/os_error.h"
#include "world/shared_memory.h"

namespace holdfast::world {
namespace {

constexpr std::size_t kFdsMax = 3;

Fd duplicate(int fd) { return Fd(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)); }

/// False where the socket takes nothing now; an error where it never will.
Result<bool> send_packet(int socket, const std::string& text, const std::vector<Fd>& fds) {
  alignas(cmsghdr) char control[CMSG_SPACE(kFdsMax * sizeof(int))] = {};
  iovec part{const_cast<char*>(text.data()), text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
  for (std::size_t i = 0; i < fds.size(); ++i) {
    const int fd = fds[i].get();
    std::memcpy(CMSG_DATA(header) + i * sizeof(int), &fd, sizeof fd);
  }
  for (;;) {
    if (::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return true;
    if (errno == EAGAIN) return false;
    if (errno != EINTR) return os_error(errno, "ask the fork server");
  }
}

}  // namespace

ForkLink::ForkLink(RealLoop& loop, Family& family, Fd socket, Nanos patience, OnReady on_ready)
    : loop_(loop),
      family_(family),
      socket_(loop.context(), socket.release()),
      patience_(patience),
      on_ready_(std::move(on_ready)) {}

void ForkLink::start() { wait_for_answers(); }

Result<ForkLink::Packet> ForkLink::prepare(const SpawnSpec& spec, std::uint64_t id, Request& request) {
  request.out = TRY(open_output(spec.out), "output");
  request.err = TRY(open_output(spec.err), "output");
  request.tag = family_.make_tag();
  ForkRequest ask{.id = id, .argv = spec.argv, .env = spec.env, .cwd = spec.cwd, .ring = spec.ring != nullptr};
  ask.env[kTagVariable] = request.tag;
  Packet packet;
  packet.text = TRY(encode(ask), "request");
  packet.fds.push_back(request.out.child ? std::move(request.out.child) : duplicate(STDOUT_FILENO));
  packet.fds.push_back(request.err.child ? std::move(request.err.child) : duplicate(STDERR_FILENO));
  if (ask.ring) packet.fds.push_back(duplicate(ring_fd(spec)));
  for (const Fd& fd : packet.fds) {
    if (!fd) return os_error(errno, "duplicate a descriptor");
  }
  return packet;
}

void ForkLink::fork(const SpawnSpec& spec, ProcessEvents events, Done done) {
  const std::uint64_t id = ++last_id_;
  Request request{.tag = {}, .events = std::move(events), .out = {}, .err = {}, .done = {}};
  auto packet = socket_.is_open() ? prepare(spec, id, request)
                                  : Result<Packet>(Error(Code::Unavailable, "the fork server is gone"));
  if (!packet) {
    const Error why = std::move(packet).error().in("fork a process");
    loop_.post([done = std::move(done), why] { done(why); });
    return;
  }
  request.done = std::move(done);
  request.timer = loop_.call_after(patience_, [self = shared_from_this(), id] { self->timed_out(id); });
  requests_.emplace(id, std::move(request));
  family_.forks_pending(+1);
  queue_.push_back(*std::move(packet));
  send_queued();
}

void ForkLink::send_queued() {
  while (!waiting_to_send_ && socket_.is_open() && !queue_.empty()) {
    const auto sent = send_packet(socket_.native_handle(), queue_.front().text, queue_.front().fds);
    if (!sent) {
      // The reading side tells everybody, from the loop, that the server is gone.
      queue_.clear();
      return;
    }
    if (*sent) {
      queue_.pop_front();
      continue;
    }
    waiting_to_send_ = true;
    socket_.async_wait(asio::posix::descriptor_base::wait_write,
                       [self = shared_from_this()](const asio::error_code& failure) {
                         self->waiting_to_send_ = false;
                         if (!failure) self->send_queued();
                       });
  }
}

void ForkLink::wait_for_answers() {
  socket_.async_wait(asio::posix::descriptor_base::wait_read,
                     [self = shared_from_this()](const asio::error_code& failure) {
                       if (failure || !self->socket_.is_open()) return;
                       self->take_answers();
                       if (self->socket_.is_open()) self->wait_for_answers();
                     });
}

void ForkLink::take_answers() {
  std::string packet(kForkPacketBytesMax, '\0');
  while (socket_.is_open()) {
    const ssize_t got = ::recv(socket_.native_handle(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_TRUNC);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return down("the fork server is gone");
    if (static_cast<std::size_t>(got) > packet.size()) return down("the fork server sent an oversized packet");
    const auto message = parse_fork_message(std::string_view(packet).substr(0, static_cast<std::size_t>(got)));
    if (!message) return down(message.error().message());
    take(*message);
  }
}

void ForkLink::take(const ForkMessage& message) {
  if (const auto* ready = std::get_if<ForkReady>(&message)) return greeted(*ready);
  if (const auto* done = std::get_if<ForkDone>(&message)) return forked(done->id, done->pid);
  const auto& refusal = std::get<ForkFailed>(message);
  failed(refusal.id, refusal.why);
}

void ForkLink::greeted(const ForkReady& ready) {
  const auto on_ready = std::exchange(on_ready_, nullptr);
  if (!on_ready) return;
  if (!ready.ready) return on_ready(Error(Code::BadInput, "the fork server can't serve: " + ready.why));
  if (!ready.version.empty() && ready.version != HOLDFAST_VERSION) {
    return on_ready(Error(Code::Unavailable, "the fork server's Python has holdfast " + ready.version +
                                                 ", this is " HOLDFAST_VERSION ": install the same version"));
  }
  if (!ready.thread_modules.empty()) {
    std::string names;
    for (const auto& name : ready.thread_modules) names += (names.empty() ? "" : ", ") + name;
    log_info("the fork server has " + std::to_string(ready.threads) + " threads, from importing " + names);
  }
  on_ready(ready.threads);
}

void ForkLink::forked(std::uint64_t id, pid_t pid) {
  auto node = requests_.extract(id);
  if (node.empty()) return down("the fork server answered what nobody asked");
  Request& request = node.mapped();
  loop_.cancel(request.timer);
  auto child =
      family_.adopt(pid, request.tag, std::move(request.events), std::move(request.out), std::move(request.err));
  family_.forks_pending(-1);
  if (!request.done) {
    if (child) (*child)->signal_group(SIGKILL);  // nobody waits for it any more
    return;
  }
  if (!child) return request.done(std::move(child).error().in("fork a process"));
  request.done(std::unique_ptr<Process>(std::make_unique<ChildProcess>(*std::move(child))));
}

void ForkLink::failed(std::uint64_t id, const std::string& why) {
  auto node = requests_.extract(id);
  if (node.empty()) return;
  loop_.cancel(node.mapped().timer);
  family_.forks_pending(-1);
  if (node.mapped().done) node.mapped().done(Error(Code::Unavailable, "fork a process: " + why));
}

void ForkLink::timed_out(std::uint64_t id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  found->second.events = {};
  const auto done = std::exchange(found->second.done, nullptr);
  if (done) done(Error(Code::Unavailable, "fork a process: the fork server did not answer in time"));
}

void ForkLink::server_exited() {
  if (socket_.is_open()) take_answers();
  down("the fork server is gone");
}

void ForkLink::down(const std::string& why) {
  const auto self = shared_from_this();  // the callbacks may drop the server
  if (socket_.is_open()) socket_.close();
  queue_.clear();
  const auto requests = std::exchange(requests_, {});
  for (const auto& [id, request] : requests) loop_.cancel(request.timer);
  if (!requests.empty()) family_.forks_pending(-static_cast<int>(requests.size()));
  if (const auto on_ready = std::exchange(on_ready_, nullptr)) on_ready(Error(Code::Unavailable, why));
  for (const auto& [id, request] : requests) {
    if (request.done) request.done(Error(Code::Unavailable, "fork a process: " + why));
  }
}

void ForkLink::close() {
  on_ready_ = nullptr;
  for (auto& [id, request] : requests_) request.done = nullptr;
  down("closed");
}

}  // namespace holdfast::world
