// Two processes for one run. The front is what the user started and may kill; the agent, its child, does the work.
// Whichever dies by SIGKILL, the other ends everything that was started: the agent at the front's death, the front (to
// which orphans fall) at the agent's.
#pragma once

#include <functional>

namespace holdfast::app {

/// Told to the agent when the front has died: end at once.
int front_died_signal();

/// Runs `agent` in a child and passes SIGTERM, SIGINT, SIGUSR1 and SIGHUP on to it. Returns its exit code once it and
/// all that it left behind are gone; 1 where it died of a signal. Call before there is any thread.
int run_behind_front(const std::function<int()>& agent);

}  // namespace holdfast::app
