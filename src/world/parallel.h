// Work split over threads that live only as long as it takes.
#pragma once

#include <cstddef>
#include <functional>

#include "base/result.h"

namespace holdfast::world {

/// Runs `body(0)` to `body(count - 1)`, each once, on up to `threads` threads, the caller's among them; blocks until
/// all are done. Indices begin in order. `body` must not throw.
void parallel_for(unsigned threads, std::size_t count, const std::function<void(std::size_t)>& body);

/// The same with what can fail: after the first error no index begins; of those that failed, the error of the lowest.
Status parallel_try(unsigned threads, std::size_t count, const std::function<Status(std::size_t)>& body);

/// Runs `task`, which must not throw, on a thread of its own that gives way to whatever else wants to run on the
/// machine, as do the threads that it starts in turn; blocks until it is done.
void giving_way(const std::function<void()>& task);
/// Whether this thread does.
bool gives_way();

/// Threads that this process may run at a time, at least 1.
unsigned usable_cpus();

}  // namespace holdfast::world
