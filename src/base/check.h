// CHECK: a broken promise of our own code stops the program, in every build, and says where.
#pragma once

namespace holdfast {
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}  // namespace holdfast

#define CHECK(condition) \
  (static_cast<bool>(condition) ? void(0) : ::holdfast::check_failed(#condition, __FILE__, __LINE__))
