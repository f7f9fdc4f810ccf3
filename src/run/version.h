// The version that agent, workers and the Python package must share.
#pragma once

namespace holdfast::run {

constexpr const char* kVersion = "0.1.0";

}  // namespace holdfast::run
