// What may go wrong in a simulated cluster, how often, and how long things take. The defaults are a calm day: delays
// vary, nothing fails.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

#include "sim/random.h"

namespace holdfast::sim {

using namespace std::chrono_literals;

struct LoopPolicy {
  Delay timer_late{0us, 100us};         ///< a timer fires this much after its time
  Delay background_start{10us, 200us};  ///< until a thread takes up background work
};

/// One machine's disk.
struct DiskPolicy {
  std::uint64_t bytes_max = std::numeric_limits<std::uint64_t>::max();  ///< full past it; lower it to fill the disk now
  double read_error = 0;                                                ///< probability that a read fails
  double write_error = 0;                                               ///< that an append fails, a part of it written
  double sync_error = 0;  ///< that a sync fails; what was to be synced then stays at risk even if a later sync is Ok
  double name_error = 0;  ///< that create, open, rename, remove, make_dirs, sync_dir or list fails
  /// How long calls take. Seen only by `Loop::background`, whose `done` comes that much later.
  Nanos per_call = 20us;
  Nanos per_sync = 1ms;
  double bytes_per_s = 1e9;
  /// Say Ok and sync nothing: for tests of the tests, as a program that forgot to sync.
  bool sync_ignored = false;
  bool sync_dir_ignored = false;
};

struct NetPolicy {
  Delay same_node{20us, 200us};     ///< one way, a message within a machine
  Delay between_nodes{100us, 1ms};  ///< one way, a message between machines
  double duplicate = 0;             ///< probability that a message arrives twice
  double reorder = 0;               ///< that a message is overtaken by later ones
  Delay reorder_by{0us, 5ms};       ///< how much longer such a message (or second copy) takes
  double cut = 0;                   ///< that sending a message breaks its connection
  /// A peer that is cut off or whose machine has crashed is given up after this: TCP's own patience, far longer than
  /// a heartbeat's.
  Nanos silence = 15min;
};

struct ProcessPolicy {
  Delay start{1ms, 5ms};                  ///< exec until the program runs
  Delay notice{50us, 1ms};                ///< until the parent hears of an exit, a stop, an output
  Delay fork{2ms, 10ms};                  ///< fork server: request until the child runs
  Delay fork_answer{100us, 1ms};          ///< fork server: child runs until the answer is sent
  Delay fork_server_start{100ms, 500ms};  ///< until a fork server greets
  int fork_server_threads = 1;
  double fork_server_fails = 0;  ///< probability that it greets with "can't serve"
  double fork_fails = 0;         ///< that it answers "failed"
  double spawn_fails = 0;
  double unkillable = 0;   ///< that SIGKILL finds the process in uninterruptible sleep
  Delay unkillable_for{};  ///< how long that lasts; {0, 0}: until `release`
};

struct Policy {
  LoopPolicy loop;
  NetPolicy net;
  ProcessPolicy process;
};

/// A day with weather of its own: which faults occur, and how often, drawn anew. No disk faults, nothing unkillable.
Policy draw_policy(SimRandom& random);

}  // namespace holdfast::sim
