#include "store/json_text.h"

#include <nlohmann/json.hpp>

namespace holdfast::store {

std::optional<std::string> json_quote(std::string_view text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace holdfast::store
