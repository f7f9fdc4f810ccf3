// A simulated worker's side of its connection to the launcher: what a native thread does whatever the program is busy
// with.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "run/messages.h"
#include "sim/sim_world.h"

namespace holdfast::trial {

class FakeLine {
 public:
  struct Events {
    std::function<void()> connected;
    std::function<void(const run::Message&)> message;
    std::function<void()> gone;
  };
  /// `world` outlives this object. `order_gap`: between the greeting and what follows, for networks that let one
  /// message overtake another, as no socket does.
  FakeLine(sim::SimWorld& world, world::Nanos order_gap, Events events);
  void send(run::Message message);
  /// What was sent still arrives.
  void hang_up();
  /// Asks the epoch's store. `answered` may never be called.
  void ask(run::KvRequest request, std::function<void(const run::KvReply&)> answered);

 private:
  void greet(Result<std::unique_ptr<world::Connection>> made);
  void take(BytesView bytes);
  void beat();

  sim::SimWorld& world_;
  world::Nanos order_gap_;
  Events events_;
  std::unique_ptr<world::Connection> connection_;
  std::map<std::uint64_t, std::function<void(const run::KvReply&)>> asked_;
  std::uint64_t next_id_ = 1;
};

}  // namespace holdfast::trial
