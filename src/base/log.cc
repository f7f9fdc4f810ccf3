#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace holdfast {
namespace {

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = spdlog::stderr_color_mt("holdfast");
    made->set_pattern("%^holdfast:%$ %v");
    made->flush_on(spdlog::level::info);
    return made;
  }();
  return *instance;
}

}  // namespace

void log_info(const std::string& line) { logger().info("{}", line); }
void log_warn(const std::string& line) { logger().warn("{}", line); }
void log_error(const std::string& line) { logger().error("{}", line); }
void log_quiet(bool quiet) { logger().set_level(quiet ? spdlog::level::warn : spdlog::level::info); }

}  // namespace holdfast
