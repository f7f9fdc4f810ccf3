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

std::function<void()>& preceding() {
  static std::function<void()> fn;
  return fn;
}

void print(spdlog::level::level_enum level, const std::string& line) {
  if (preceding() && logger().should_log(level)) preceding()();
  logger().log(level, "{}", line);
}

}  // namespace

void log_info(const std::string& line) { print(spdlog::level::info, line); }
void log_warn(const std::string& line) { print(spdlog::level::warn, line); }
void log_error(const std::string& line) { print(spdlog::level::err, line); }
void log_preceded_by(std::function<void()> fn) { preceding() = std::move(fn); }
void log_quiet(bool quiet) { logger().set_level(quiet ? spdlog::level::warn : spdlog::level::info); }

}  // namespace holdfast
