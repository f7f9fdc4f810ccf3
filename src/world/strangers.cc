#include "world/strangers.h"

#include "base/log.h"

namespace holdfast::world {
namespace {

constexpr std::size_t kHostsMax = 64;

}  // namespace

void Strangers::refused(const std::string& host, const std::string& why) {
  if (logged_.size() >= kHostsMax || !logged_.insert(host).second) return;
  log_warn("refused a connection with " + host + ": " + why + "; more from there will not be reported");
  if (logged_.size() == kHostsMax) log_warn("refusals of further hosts will not be reported");
}

}  // namespace holdfast::world
