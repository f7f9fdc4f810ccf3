// World on a real Linux machine: one asio loop, pidfds, memfds, POSIX files.
#pragma once

#include <memory>

#include "world/world.h"

namespace holdfast::world {

struct RealWorldOptions {
  /// Become a child subreaper: orphans of our children come to us and `kill_all` reaches them.
  bool subreaper = false;
};

std::unique_ptr<World> make_real_world(const RealWorldOptions& options = {});

}  // namespace holdfast::world
