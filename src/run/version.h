// The version that agent, workers and the Python package must share.
#pragma once

namespace holdfast::run {

constexpr const char* kVersion = HOLDFAST_VERSION;  // from CMakeLists.txt

}  // namespace holdfast::run
