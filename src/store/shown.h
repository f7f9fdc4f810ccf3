// Text from outside, made fit for one line of a message.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::store {

/// Cut to 200 bytes; what is no printable ASCII or UTF-8 becomes "?".
std::string shown(std::string_view text);

}  // namespace holdfast::store
