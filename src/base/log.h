// One line to standard error for people: "holdfast: what happened". Levels: info, warn, error.
#pragma once

#include <functional>
#include <string>

namespace holdfast {

void log_info(const std::string& line);
void log_warn(const std::string& line);
void log_error(const std::string& line);
/// Called before each line that is printed: whoever draws on the terminal clears the way.
void log_preceded_by(std::function<void()> fn);
/// Info lines are dropped; warnings and errors stay.
void log_quiet(bool quiet);

}  // namespace holdfast
