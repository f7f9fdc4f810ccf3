// The one place where text becomes a JSON string.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::store {

/// `text` in quotes, escaped; none where it is not UTF-8.
std::optional<std::string> json_quote(std::string_view text);

}  // namespace holdfast::store
