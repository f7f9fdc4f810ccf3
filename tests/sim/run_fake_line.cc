#include "tests/sim/run_fake_line.h"

#include <charconv>

#include "run/version.h"

namespace holdfast::trial {

namespace {
constexpr world::Nanos kBeatEvery = std::chrono::milliseconds(200);
constexpr world::Nanos kPatience = std::chrono::seconds(30);

world::Address address_from(const std::string& text) {
  const std::size_t colon = text.find_last_of(':');
  world::Address address{.host = text.substr(0, colon), .port = 0};
  std::from_chars(text.data() + colon + 1, text.data() + text.size(), address.port);
  return address;
}
}  // namespace

FakeLine::FakeLine(sim::SimWorld& world, world::Nanos order_gap, Events events)
    : world_(world), order_gap_(order_gap), events_(std::move(events)) {
  world_.net().connect(address_from(world_.env("HOLDFAST_ADDRESS").value_or("")),
                       world_.env("HOLDFAST_SECRET").value_or(""), kPatience,
                       [this](Result<std::unique_ptr<world::Connection>> made) { greet(std::move(made)); });
}

void FakeLine::greet(Result<std::unique_ptr<world::Connection>> made) {
  if (!made) return events_.gone();
  connection_ = *std::move(made);
  connection_->on_message([this](BytesView bytes) { take(bytes); });
  connection_->on_close([this](const std::string&) { events_.gone(); });
  const std::string worker = world_.env("HOLDFAST_WORKER").value_or("0");
  send(run::Hello{.worker = std::stoull(worker), .version = run::kVersion});
  world_.loop().call_after(order_gap_, [this] {
    beat();
    events_.connected();
  });
}

void FakeLine::beat() {
  send(run::Heartbeat{});
  world_.loop().call_after(kBeatEvery, [this] { beat(); });
}

void FakeLine::send(run::Message message) {
  if (connection_) connection_->send(run::encode(std::move(message)));
}

void FakeLine::hang_up() {
  if (connection_) connection_->close();
}

void FakeLine::ask(run::KvRequest request, std::function<void(const run::KvReply&)> answered) {
  request.id = next_id_++;
  asked_[request.id] = std::move(answered);
  send(std::move(request));
}

void FakeLine::take(BytesView bytes) {
  const auto message = run::decode(bytes);
  if (!message) return;
  const auto* reply = std::get_if<run::KvReply>(&*message);
  if (reply == nullptr) return events_.message(*message);
  auto asked = asked_.extract(reply->id);
  if (!asked.empty()) asked.mapped()(*reply);
}

}  // namespace holdfast::trial
