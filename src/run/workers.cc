#include "run/workers.h"

#include <unistd.h>

#include <charconv>
#include <csignal>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "run/version.h"

namespace holdfast::run {
namespace {

constexpr int kForkServerStartsMax = 3;
constexpr int kForkTriesMax = 5;
constexpr world::Nanos kForkRetry = std::chrono::milliseconds(50);
constexpr std::size_t kStrangersMax = 1024;
constexpr std::uint64_t kErrorBytesMax = std::uint64_t{1} << 20;

std::vector<std::string> python_module(const RunOptions& options, const std::string& module) {
  return {options.interpreter, "-m", module};
}

// Threads would make a fork unsafe: the libraries that start some on import are told not to.
Env single_threaded() { return {{"OMP_NUM_THREADS", "1"}, {"OPENBLAS_NUM_THREADS", "1"}, {"MKL_NUM_THREADS", "1"}}; }

}  // namespace

Workers::Workers(world::World& world, const RunOptions& options, WorkerEvents events)
    : world_(world), options_(options), events_(std::move(events)) {}

Workers::~Workers() = default;

Status Workers::start() {
  auto on_peer = [this](std::unique_ptr<world::Connection> peer) { this->on_peer(std::move(peer)); };
  listener_ = TRY(world_.net().listen(options_.bind, options_.secret, on_peer), "listen for workers");
  facts_.address = listener_->address().text();
  facts_.agent_pid = ::getpid();
  if (options_.interpreter.empty()) {
    way_ = Way::Plain;
    facts_.agent_store = false;
    facts_.store_port = free_port();
  } else {
    start_fork_server();
  }
  return Ok{};
}

void Workers::start_fork_server() {
  world::SpawnSpec spec;
  spec.argv = python_module(options_, "holdfast.fork_server");
  for (const std::string& module : options_.preload) {
    spec.argv.push_back("--preload");
    spec.argv.push_back(module);
  }
  spec.env = worker_env(options_, facts_, 0);
  for (const auto& [key, value] : single_threaded()) spec.env[key] = value;
  world::ProcessEvents events;
  events.on_output = [this](world::Stream stream, BytesView chunk) { events_.on_output(0, stream, chunk); };
  events.on_exit = [this](world::ExitStatus) {
    if (ended_ || way_ != Way::Fork) return;
    events_.on_note("the fork server ended; starting another");
    way_ = Way::Undecided;
    fork_server_.reset();
    for (const auto& [worker, asked] : std::exchange(forking_, {})) wait_again(asked);
    start_fork_server();
  };
  if (++fork_server_starts_ > kForkServerStartsMax) return on_fork_server(Error(Code::Unavailable, "it keeps ending"));
  auto server = world_.processes().spawn_fork_server(
      spec, std::move(events), [this](Result<int> threads) { on_fork_server(std::move(threads)); });
  if (!server) return on_fork_server(std::move(server).error());
  fork_server_ = *std::move(server);
}

void Workers::on_fork_server(Result<int> threads) {
  if (ended_ || way_ != Way::Undecided) return;
  if (!threads) {
    const bool ours = threads.error().code() == Code::BadInput;  // it runs, and says why it can't serve
    way_ = ours ? Way::Standby : Way::Plain;
    events_.on_note(std::string(ours ? "no forking: " : "this Python cannot serve forks, so ranks start cold: ") +
                    threads.error().message());
  } else if (options_.spawn == SpawnWay::Standby) {
    way_ = Way::Standby;
  } else if (*threads > 1) {
    way_ = Way::Standby;
    events_.on_note("a module starts threads on import, so ranks are standby processes instead of forks");
  } else {
    way_ = Way::Fork;
  }
  if (way_ == Way::Plain) facts_.agent_store = false;
  start_store();
}

// Scripts that call init_process_group themselves find a store that outlives every rank. It is a process of its own:
// whoever hosts it has threads and must never fork.
void Workers::start_store() {
  if (facts_.store_port != 0 || way_ == Way::Plain) return start_waiting();
  world::SpawnSpec spec;
  spec.env = worker_env(options_, facts_, 0);
  world::ProcessEvents events;
  events.on_output = [this](world::Stream stream, BytesView chunk) {
    if (stream == world::Stream::Out) {
      on_store_output(chunk);
    } else {
      events_.on_output(0, stream, chunk);
    }
  };
  events.on_exit = [this, attempt = store_attempt_](world::ExitStatus) {
    if (!ended_ && attempt == store_attempt_) on_store_exit();
  };
  if (way_ == Way::Fork) {
    spec.argv = {"-m", "holdfast.store_server"};
    fork_server_->fork(spec, std::move(events), [this](Result<std::unique_ptr<world::Process>> process) {
      if (process) {
        store_ = *std::move(process);
      } else {
        facts_.agent_store = false;
        start_waiting();
      }
    });
    return;
  }
  spec.argv = python_module(options_, "holdfast.store_server");
  auto process = world_.processes().spawn(spec, std::move(events));
  if (process) {
    store_ = *std::move(process);
  } else {
    facts_.agent_store = false;
    start_waiting();
  }
}

void Workers::on_store_exit() {
  events_.on_note("the store for plain scripts ended");
  if (facts_.store_port != 0) return;
  facts_.agent_store = false;
  start_waiting();
}

void Workers::renew_store(int restart_count) {
  store_attempt_ = restart_count;
  if (!facts_.agent_store) facts_.store_port = free_port();
  if (!facts_.agent_store || way_ == Way::Undecided) return;
  if (store_) store_->signal_group(SIGKILL);
  auto old = std::shared_ptr<world::Process>(std::move(store_));  // posted: it may be what is calling us
  world_.loop().post([old] {});
  facts_.store_port = 0;
  store_text_.clear();
  start_store();
}

void Workers::on_store_output(BytesView chunk) {
  if (facts_.store_port != 0 || store_text_.size() > 4096) return;
  store_text_ += as_text(chunk);
  const std::size_t at = store_text_.find("port ");
  const std::size_t end = store_text_.find('\n', at);
  if (at == std::string::npos || end == std::string::npos) return;
  std::from_chars(store_text_.data() + at + 5, store_text_.data() + end, facts_.store_port);
  start_waiting();
}

// Rank 0 of a program that we can't hand a socket to will host its own store: the port was free a moment ago.
std::uint16_t Workers::free_port() {
  const auto probe = world_.net().listen({"127.0.0.1", 0}, options_.secret, [](std::unique_ptr<world::Connection>) {});
  return probe ? (*probe)->address().port : std::uint16_t{0};
}

void Workers::start_waiting() {
  if (!facts_.agent_store) facts_.store_port = free_port();
  std::deque<Waiting> waiting;
  waiting.swap(waiting_);
  for (const Waiting& each : waiting) launch(each);
}

void Workers::spawn(WorkerId worker, std::optional<Rank> rank, int restart_count) {
  workers_[worker].spawned_at = world_.clock().steady();
  if (restart_count != store_attempt_) renew_store(restart_count);
  const Waiting waiting{.worker = worker, .rank = rank, .restart_count = restart_count};
  if (can_launch()) {
    launch(waiting);
  } else {
    waiting_.push_back(waiting);
  }
}

bool Workers::can_launch() const {
  return !ended_ && way_ != Way::Undecided && (facts_.store_port != 0 || !facts_.agent_store);
}

void Workers::launch(const Waiting& waiting) {
  Worker& worker = workers_[waiting.worker];
  if (auto memory = world_.processes().make_shared_memory(telemetry::kRingBytes)) {
    worker.memory = *std::move(memory);
    worker.ring = std::make_unique<telemetry::RingReader>(worker.memory->bytes());
  }
  const world::SpawnSpec spec = spec_of(waiting, worker);
  const WorkerId id = waiting.worker;
  if (way_ == Way::Fork) {
    forking_[id] = waiting;
    fork_server_->fork(spec, events_of(id),
                       [this, id](Result<std::unique_ptr<world::Process>> process) { forked(id, std::move(process)); });
  } else {
    started(id, world_.processes().spawn(spec, events_of(id)));
  }
}

// A fork server that has died, or a machine that is out of processes for a moment, is no fault of the worker's.
void Workers::forked(WorkerId worker, Result<std::unique_ptr<world::Process>> process) {
  auto asked = forking_.extract(worker);
  if (asked.empty()) {
    if (process) (*process)->signal_group(SIGKILL);  // it waits to be forked by another server
    return;
  }
  Waiting& waiting = asked.mapped();
  if (process || ended_ || ++waiting.forks_failed > kForkTriesMax) return started(worker, std::move(process));
  events_.on_note("could not fork a worker, trying again: " + process.error().message());
  wait_again(waiting);
  world_.loop().call_after(kForkRetry * waiting.forks_failed, [this] {
    if (can_launch()) start_waiting();
  });
}

void Workers::wait_again(const Waiting& waiting) {
  const Worker* found = find(waiting.worker);
  if (found == nullptr) return;
  if (found->pending_signal) {
    world_.loop().post([this, worker = waiting.worker, number = *found->pending_signal] {
      exited(worker, {.code = 0, .signal = number});
    });
  } else {
    waiting_.push_back(waiting);
  }
}

world::SpawnSpec Workers::spec_of(const Waiting& waiting, Worker& worker) const {
  world::SpawnSpec spec;
  spec.env = worker_env(options_, facts_, waiting.worker);
  if (waiting.rank) {
    spec.env.merge(rank_env(options_, facts_, *waiting.rank, waiting.restart_count));
  } else {
    spec.env["HOLDFAST_SPARE"] = "1";
    spec.env["WORLD_SIZE"] = std::to_string(options_.policy.world_size);
  }
  spec.ring = worker.memory.get();
  if (way_ == Way::Standby) spec.argv = python_module(options_, "holdfast.worker");
  if (way_ == Way::Plain && !options_.interpreter.empty()) spec.argv = {options_.interpreter};
  spec.argv.insert(spec.argv.end(), options_.command.begin(), options_.command.end());
  return spec;
}

world::ProcessEvents Workers::events_of(WorkerId worker) {
  world::ProcessEvents events;
  events.on_exit = [this, worker](world::ExitStatus status) { exited(worker, status); };
  events.on_stopped = [this, worker] {
    if (Worker* found = find(worker)) found->stopped_at = world_.clock().steady();
    events_.on_stop_change(worker, true);
  };
  events.on_continued = [this, worker] {
    if (Worker* found = find(worker)) found->stopped_at.reset();
    events_.on_stop_change(worker, false);
  };
  events.on_output = [this, worker](world::Stream stream, BytesView chunk) {
    events_.on_output(worker, stream, chunk);
  };
  return events;
}

void Workers::started(WorkerId worker, Result<std::unique_ptr<world::Process>> process) {
  Worker* found = find(worker);
  if (!process) {
    events_.on_note("could not start a worker: " + process.error().message());
    // Later: whoever asked for it may be about to ask for others.
    world_.loop().post([this, worker] { exited(worker, {.code = kExitFailed, .signal = 0}); });
    return;
  }
  if (found == nullptr) return;
  found->process = *std::move(process);
  if (found->pending_signal) found->process->signal_group(*found->pending_signal);
}

void Workers::exited(WorkerId worker, world::ExitStatus status) {
  const std::string error = read_error(worker);
  // Its helpers (data-loading workers) go with it; then its handles, but not while one of them is calling us.
  if (Worker* found = find(worker); found != nullptr && found->process) found->process->signal_group(SIGKILL);
  // What it still had to say is in its ring while `on_exit` is told.
  events_.on_exit(worker, status, error);
  auto gone = std::make_shared<std::map<WorkerId, Worker>::node_type>(workers_.extract(worker));
  world_.loop().post([gone] {});
}

std::string Workers::read_error(WorkerId worker) {
  const std::string path = error_file(options_, worker);
  if (!world_.disk().exists(path)) return "";
  auto bytes = world::read_file(world_.disk(), path, kErrorBytesMax);
  if (!bytes) return "";
  const auto document = nlohmann::json::parse(as_text(*bytes), nullptr, /*allow_exceptions=*/false);
  if (!document.is_object() || !document.contains("message")) return "uncaught exception";
  const auto& message = document["message"];
  if (message.is_string()) return message.get<std::string>();
  const auto stack =
      message.is_object() ? message.value("/extraInfo/py_callstack"_json_pointer, nlohmann::json()) : message;
  return stack.is_string() ? stack.get<std::string>() : message.dump();
}

void Workers::on_peer(std::unique_ptr<world::Connection> peer) {
  if (strangers_.size() >= kStrangersMax) return;
  const std::uint64_t id = next_stranger_++;
  peer->on_message([this, id](BytesView bytes) { greet(id, bytes); });
  peer->on_close([this, id](const std::string&) { world_.loop().post([this, id] { strangers_.erase(id); }); });
  strangers_[id] = std::move(peer);
  world_.loop().call_after(std::chrono::seconds(10), [this, id] { strangers_.erase(id); });
}

void Workers::greet(std::uint64_t stranger, BytesView bytes) {
  const auto found = strangers_.find(stranger);
  if (found == strangers_.end()) return;
  auto message = decode(bytes);
  const Hello* hello = message ? std::get_if<Hello>(&*message) : nullptr;
  Worker* worker = hello != nullptr ? find(hello->worker) : nullptr;
  if (worker == nullptr || worker->connection || hello->version != kVersion) {
    events_.on_note("refused a connection that is not one of this run's workers");
    world_.loop().post([this, stranger] { strangers_.erase(stranger); });
    return;
  }
  const WorkerId id = hello->worker;
  worker->heard_at = world_.clock().steady();
  worker->connection = std::move(found->second);
  strangers_.erase(found);
  worker->connection->on_message([this, id](BytesView each) {
    Worker* sender = find(id);
    auto decoded = decode(each);
    if (sender == nullptr) return;
    if (!decoded) {
      events_.on_note("worker " + std::to_string(id) + ": " + decoded.error().message());
      return;
    }
    sender->heard_at = world_.clock().steady();
    events_.on_message(id, *decoded);
  });
  // The process tells of its end; a lost connection alone shows as silence.
  worker->connection->on_close([this, id](const std::string&) {
    if (Worker* gone = find(id)) gone->hung_up_at = world_.clock().steady();
  });
}

void Workers::send(WorkerId worker, const Message& message) {
  Worker* found = find(worker);
  if (found != nullptr && found->connection) found->connection->send(encode(message));
}

void Workers::signal_group(WorkerId worker, int number) {
  Worker* found = find(worker);
  if (found == nullptr) return;
  if (!found->process) {
    found->pending_signal = number;
    // Not started yet and never will be: it is gone already.
    const auto waiting =
        std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& each) { return each.worker == worker; });
    if (waiting == waiting_.end()) return;
    waiting_.erase(waiting);
    world_.loop().post([this, worker, number] { exited(worker, {.code = 0, .signal = number}); });
    return;
  }
  found->process->signal_group(number);
  // A stopped process acts on no other signal until it runs again; SIGKILL alone needs no help.
  if (number != SIGKILL && found->stopped_at) found->process->signal_group(SIGCONT);
}

void Workers::signal(WorkerId worker, int number) {
  Worker* found = find(worker);
  if (found != nullptr && found->process) found->process->signal(number);
}

Env Workers::rank_env_of(Rank rank, int restart_count) const { return rank_env(options_, facts_, rank, restart_count); }

Workers::Worker* Workers::find(WorkerId worker) {
  const auto found = workers_.find(worker);
  return found == workers_.end() ? nullptr : &found->second;
}

std::vector<pid_t> Workers::end_all(world::Nanos patience) {
  ended_ = true;
  waiting_.clear();
  return world_.processes().kill_all(patience);
}

}  // namespace holdfast::run
