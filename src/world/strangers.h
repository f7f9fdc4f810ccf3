// Peers that were refused, so that each is logged once and a flood of them fills no log.
#pragma once

#include <set>
#include <string>

namespace holdfast::world {

class Strangers {
 public:
  /// Logs `why`, the first time for `host`; of hosts past the 64th nothing is logged.
  void refused(const std::string& host, const std::string& why);

 private:
  std::set<std::string> logged_;
};

}  // namespace holdfast::world
