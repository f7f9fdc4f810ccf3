// A training script with the Python package around it, as an actor: attaches, joins its group, trains, saves, recovers.
// It says to the launcher what a real rank says, at the same points, and tells the oracle all that it does.
#pragma once

#include <memory>
#include <optional>
#include <set>

#include "sim/sim_world.h"
#include "telemetry/ring.h"
#include "tests/sim/run_fake_line.h"
#include "tests/sim/run_oracle.h"
#include "world/faulty_disk.h"

namespace holdfast::trial {

/// Bugs put in on purpose, to see that the oracle finds them.
enum class Planted : std::uint8_t {
  None,
  LateResults,   ///< takes the result of a collective of an epoch that it has left
  OldAddresses,  ///< takes addresses that it was given in an older epoch, as from a store without epochs
};

/// What all ranks of a run have in common. Outlives them.
struct Training {
  Oracle* oracle = nullptr;
  Step steps = 20;
  sim::Delay setup{std::chrono::milliseconds(5), std::chrono::milliseconds(80)};     ///< importing, building a model
  sim::Delay compute{std::chrono::milliseconds(10), std::chrono::milliseconds(15)};  ///< forward and backward
  std::size_t state_bytes = 256;
  bool helpers = false;      ///< each rank has a data-loading process
  Nanos order_gap{};         ///< between two messages whose order counts, where the network may change it
  Step raises_at = kNoStep;  ///< the script has a bug that shows in this step
  Planted planted = Planted::None;
};

/// Marks are stamped with this cluster's time. One cluster at a time.
void stamp_marks_by(const sim::Cluster* cluster);

class FakeRank final : public sim::Actor {
 public:
  /// Both outlive this object.
  FakeRank(sim::SimWorld& world, const Training& training);
  ~FakeRank() override;

 private:
  /// What its main thread is at.
  enum class At : std::uint8_t {
    Connecting,
    Parked,
    Attaching,
    Gathering,  ///< has said Ready
    Busy,       ///< own work: notices a broken group only where it next needs it
    Group,      ///< waits for others, through sockets or the store
    Boundary,   ///< waits for others' votes
    Verdict,    ///< its group failed; the launcher shall say why
    Finishing,
    Leaving,
    Hung,
  };

  // The native thread.
  void on_message(const run::Message& message);
  void handle(const run::Promote& message);
  void handle(const run::Assign& message);
  void handle(const run::Regroup& message);
  void handle(const run::Abort& message);
  void handle(const run::Verdict& message);
  void handle(const run::Probe& message);
  void handle(const run::Release& message);
  void handle(const run::Propose& message);
  void handle(const run::Agreed& message);
  void handle(const run::Act& message);
  template <typename Other>
  void handle(const Other&) {}
  void connected();
  void gone();

  // The main thread.
  template <typename Do>
  auto in_turn(Do act) {
    return [this, turn = turn_, act = std::move(act)](auto&&... with) {
      if (turn == turn_) act(with...);
    };
  }
  template <typename Do>
  void later(Nanos delay, Do act) {
    world_.loop().call_after(delay, in_turn(std::move(act)));
  }
  template <typename Do>
  void later(const sim::Delay& delay, Do act) {
    later(random_.draw(delay), std::move(act));
  }
  void move_to(At at);
  bool broken() const { return aborted_ >= place_.epoch; }
  void attach();
  void rejoin();
  void enter();
  void exchange_addresses();
  void ask_address(Rank rank);
  void mesh();
  void failed(const std::string& why);
  Oracle::Callbacks when_met(const std::function<void(const std::map<Rank, State>&)>& done, const std::string& what);
  void restore();
  void load();
  void loaded(Result<State> state);
  void copy(std::size_t index);
  void in_place();
  void next_step();
  void reduce(Step step);
  void apply(Step step);
  void boundary(Step step);
  void settled(Step step);
  void act_at_boundary(std::uint8_t actions);
  void save(const std::function<void()>& saved);
  void drain(std::function<void()> drained);
  void written();
  void finish();
  void leave();
  bool act_out(Step step);
  void raise(const std::string& error);
  Result<State> read_checkpoint();
  run::ShardDone write_shard(Step step, Epoch epoch, const State& state);
  void mark(telemetry::Mark mark, Step step);
  void phase(telemetry::Phase phase);

  sim::SimWorld& world_;
  const Training& training_;
  Oracle& oracle_;
  sim::SimRandom random_;
  FakeLine line_;
  std::optional<telemetry::RingWriter> ring_;
  world::FaultyDisk disk_;

  At at_ = At::Connecting;
  std::uint64_t turn_ = 0;  // of the main thread: what was begun in an older one counts no more
  run::Assign assign_;
  run::Regroup plan_;
  Place place_;      // in the group joined last
  Epoch heard_ = 0;  // newest epoch told of
  Epoch taken_ = 0;  // epoch of the newest Regroup taken
  Epoch aborted_ = 0;
  std::uint64_t round_ = 0;
  State state_;
  bool usable_ = false;
  Step begun_ = kNoStep;
  Step passed_ = kNoStep;
  std::int64_t sequence_ = 0;
  bool interpreter_held_ = false;
  std::optional<run::Propose> proposal_;
  std::uint64_t newest_proposal_ = 0;
  std::map<Step, std::uint8_t> due_;  // agreed on, by the step after which it is to be done
  std::vector<run::Act> acts_;
  bool writing_ = false;
  std::function<void()> drained_;
  std::map<Rank, std::string> addresses_;
  std::set<Rank> unanswered_;
};

}  // namespace holdfast::trial
