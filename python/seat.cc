#include "seat.h"

#include <pthread.h>
#include <sys/mman.h>

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "gloo_waits.h"

namespace holdfast::python {
namespace {

constexpr auto kConnectPatience = std::chrono::seconds(30);
constexpr auto kFarewell = std::chrono::milliseconds(20);

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

template <typename Integer>
bool parse(std::string_view text, Integer& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

// Never unmapped: marks may be written until the process ends.
std::span<std::byte> map_ring() {
  int fd = -1;
  if (!parse(environment("HOLDFAST_RING_FD"), fd) || fd < 0) return {};
  void* memory = ::mmap(nullptr, telemetry::kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return {};
  return {static_cast<std::byte*>(memory), telemetry::kRingBytes};
}

std::thread start_loop(world::Loop& loop) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread([&loop] {
    pthread_setname_np(pthread_self(), "holdfast-heart");
    loop.run();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

Result<std::unique_ptr<Seat>> Seat::take(std::function<void(std::uint64_t probe)> ask) {
  run::MemberOptions options;
  const std::string address = environment("HOLDFAST_ADDRESS");
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || !parse(std::string_view(address).substr(colon + 1), options.address.port) ||
      !parse(environment("HOLDFAST_WORKER"), options.worker)) {
    return Error(Code::BadInput, "this process has no agent: start the script with `holdfast run`");
  }
  std::string host = address.substr(0, colon);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  options.address.host = host;
  options.secret = environment("HOLDFAST_SECRET");
  options.ring = map_ring();

  std::unique_ptr<Seat> seat(new Seat);
  seat->prober_ = std::make_unique<Prober>(std::move(ask));
  options.on_probe = [prober = seat->prober_.get()](std::uint64_t probe) { prober->want(probe); };
  options.on_break = &GlooWaits::group_broken;
  seat->world_ = world::make_real_world();
  seat->member_ = std::make_unique<run::Member>(*seat->world_, std::move(options));
  seat->loop_ = start_loop(seat->world_->loop());
  (void)TRY(seat->member_->connect(kConnectPatience), "holdfast");
  return seat;
}

Seat::~Seat() {
  if (loop_.joinable()) {
    member_->leave();
    // The last bytes leave while the loop runs on for a moment.
    world_->loop().post([this] { world_->loop().call_after(kFarewell, [this] { world_->loop().stop(); }); });
    loop_.join();
  }
  prober_.reset();
}

}  // namespace holdfast::python
