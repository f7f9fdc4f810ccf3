// Who hangs? A pure judgement over what is known of each rank of the group at one moment. A rank is condemned on
// evidence about itself (stopped, frozen, not there where the others wait), never because nobody moves.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "telemetry/deadlines.h"
#include "telemetry/marks.h"

namespace holdfast::telemetry {

/// What asking a rank's interpreter came to. The asker is the rank's native thread, which needs the interpreter lock.
struct Probe {
  bool answered = false;
  Nanos waiting_for{0};        ///< unanswered: since the request was sent
  Nanos age{0};                ///< answered: since the answer was given
  std::uint64_t sequence = 0;  ///< answered: collectives the rank has entered in this group
  std::string stack{};         ///< answered: Python stack of the main thread, innermost call last
};

struct RankView {
  Rank rank = 0;
  Phase phase = Phase::Start;
  Step step = kNoStep;
  Nanos in_phase_for{0};
  bool first_step = false;  ///< its first step in this process or group: slower by nature
  bool waits = false;       ///< in a call of ours that returns when all ranks are there (ready, finished): arrived
  bool exiting = false;     ///< has said goodbye; only stopping and silence are judged
  std::optional<Nanos> stopped_for{};    ///< SIGSTOP and kin: since then
  std::optional<Nanos> heartbeat_age{};  ///< of the native thread; none before its first
  std::optional<Probe> probe{};          ///< the newest probe of this step, if any
};

struct HangVerdict {
  enum class Kind : std::uint8_t {
    Nothing,  ///< all well, or too early to say
    Probe,    ///< ask the interpreters of `ranks` (again), then judge again
    Condemn,  ///< `ranks` are guilty of `word`: stopped, hung or gil_held
    Unknown,  ///< too late, but nothing points at anyone: `text` says what is known
  };
  Kind kind = Kind::Nothing;
  std::vector<Rank> ranks;
  std::string word;
  std::string text;  ///< Condemn: the evidence, for the fault's record; Unknown: why
  /// Ranks whose probe has not come back in time: an event of its own, whatever the verdict.
  std::vector<Rank> probes_lost;
};

/// `ranks` are the members of one group. Stateless: a fault repeated after a recovery is judged like the first.
HangVerdict judge_hang(std::span<const RankView> ranks, const HangPolicy& policy);

}  // namespace holdfast::telemetry
