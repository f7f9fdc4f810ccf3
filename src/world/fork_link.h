// Our end of the socket to a fork server; the protocol is docs/format-fork-server.md.
#pragma once

#include <asio/posix/stream_descriptor.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "world/family.h"
#include "world/fork_message.h"

namespace holdfast::world {

/// Shared by the ForkServer the user holds, the asio handlers, and the server's exit event.
class ForkLink : public std::enable_shared_from_this<ForkLink> {
 public:
  using OnReady = std::function<void(Result<int>)>;
  using Done = std::function<void(Result<std::unique_ptr<Process>>)>;

  /// `family` outlives this object. `on_ready` gets BadInput from a server that runs and says why it can't serve, and
  /// Unavailable where there is none: it died, or is of another version.
  ForkLink(RealLoop& loop, Family& family, Fd socket, Nanos patience, OnReady on_ready);
  void start();
  void fork(const SpawnSpec& spec, ProcessEvents events, Done done);
  /// Takes the last answers it sent, then gives up on the rest.
  void server_exited();
  /// Hangs up, which ends the server. No callback comes any more.
  void close();

 private:
  struct Request {
    std::string tag;
    ProcessEvents events;
    OutputEnds out;
    OutputEnds err;
    Done done;
    TimerId timer = kNoTimer;
  };
  struct Packet {
    std::string text;
    std::vector<Fd> fds;
  };

  Result<Packet> prepare(const SpawnSpec& spec, std::uint64_t id, Request& request);
  void wait_for_answers();
  void take_answers();
  void take(const ForkMessage& message);
  void greeted(const ForkReady& ready);
  void forked(std::uint64_t id, pid_t pid);
  void failed(std::uint64_t id, const std::string& why);
  void timed_out(std::uint64_t id);
  void send_queued();
  void down(const std::string& why);

  RealLoop& loop_;
  Family& family_;
  asio::posix::stream_descriptor socket_;
  Nanos patience_;  // for each answer
  OnReady on_ready_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, Request> requests_;  // without `done`: timed out, but its child may still come
  std::deque<Packet> queue_;
  bool waiting_to_send_ = false;
};

}  // namespace holdfast::world
