#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace holdfast {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: CHECK(%s) failed: a bug in Holdfast, please report it\n", file, line, condition);
  std::abort();
}

}  // namespace holdfast
