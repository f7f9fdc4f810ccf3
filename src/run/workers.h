// The processes of a run: started by fork or exec, their rings, their connections, their output.
#pragma once

#include <deque>
#include <map>
#include <memory>

#include "run/launch_env.h"
#include "run/messages.h"
#include "telemetry/ring.h"
#include "world/world.h"

namespace holdfast::run {

/// What a worker does that the agent must know. Called on the loop.
struct WorkerEvents {
  std::function<void(WorkerId, const Message&)> on_message;
  std::function<void(WorkerId, world::ExitStatus, const std::string& error)> on_exit;
  std::function<void(WorkerId, bool stopped)> on_stop_change;
  std::function<void(WorkerId, world::Stream, BytesView)> on_output;
  std::function<void(const std::string&)> on_note;
};

class Workers {
 public:
  struct Worker {
    std::unique_ptr<world::Process> process;
    std::unique_ptr<world::SharedMemory> memory;
    std::unique_ptr<telemetry::RingReader> ring;
    std::unique_ptr<world::Connection> connection;
    world::Nanos spawned_at{};
    std::optional<world::Nanos> heard_at;    ///< last message of any kind
    std::optional<world::Nanos> hung_up_at;  ///< its connection is closed since then
    std::optional<world::Nanos> stopped_at;  ///< stopped by a signal since then
    std::optional<int> pending_signal;       ///< came while it was being forked
  };

  /// `world` and `options` outlive this object.
  Workers(world::World& world, const RunOptions& options, WorkerEvents events);
  ~Workers();
  /// Opens the listener and starts the fork server and the store; workers spawned before these are there wait for them.
  Status start();
  /// `rank_env`: empty for a spare.
  void spawn(WorkerId worker, std::optional<Rank> rank, int restart_count);
  void send(WorkerId worker, const Message& message);
  void signal_group(WorkerId worker, int number);
  void signal(WorkerId worker, int number);
  Env rank_env_of(Rank rank, int restart_count) const;
  const std::map<WorkerId, Worker>& all() const { return workers_; }
  Worker* find(WorkerId worker);
  /// Ends everything. Returns pids that would not die.
  std::vector<pid_t> end_all(world::Nanos patience);

 private:
  struct Waiting {
    WorkerId worker;
    std::optional<Rank> rank;
    int restart_count;
    int forks_failed = 0;
  };
  enum class Way : std::uint8_t { Undecided, Fork, Standby, Plain };

  void start_fork_server();
  void on_fork_server(Result<int> threads);
  void start_store();
  std::uint16_t free_port();
  void renew_store(int restart_count);
  void on_store_exit();
  void on_store_output(BytesView chunk);
  void start_waiting();
  bool can_launch() const;
  void launch(const Waiting& waiting);
  void forked(WorkerId worker, Result<std::unique_ptr<world::Process>> process);
  void wait_again(const Waiting& waiting);
  world::SpawnSpec spec_of(const Waiting& waiting, Worker& worker) const;
  world::ProcessEvents events_of(WorkerId worker);
  void started(WorkerId worker, Result<std::unique_ptr<world::Process>> process);
  void exited(WorkerId worker, world::ExitStatus status);
  void on_peer(std::unique_ptr<world::Connection> peer);
  void greet(std::uint64_t stranger, BytesView bytes);
  std::string read_error(WorkerId worker);

  world::World& world_;
  const RunOptions& options_;
  WorkerEvents events_;
  LaunchFacts facts_;
  std::unique_ptr<world::Listener> listener_;
  std::unique_ptr<world::ForkServer> fork_server_;
  int fork_server_starts_ = 0;
  std::unique_ptr<world::Process> store_;
  std::string store_text_;
  int store_attempt_ = 0;  // restart count that the store is for: addresses of an earlier one must not be found
  Way way_ = Way::Undecided;
  bool ended_ = false;
  std::map<WorkerId, Worker> workers_;
  std::deque<Waiting> waiting_;
  std::map<WorkerId, Waiting> forking_;                                    // asked of the fork server, not answered yet
  std::map<std::uint64_t, std::unique_ptr<world::Connection>> strangers_;  // proved the secret, not yet said who
  std::uint64_t next_stranger_ = 1;
};

}  // namespace holdfast::run
