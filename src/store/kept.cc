#include "store/kept.h"

#include <nlohmann/json.hpp>

namespace holdfast::store {
namespace {

using nlohmann::json;

Error wrong(const std::string& what) { return {Code::BadInput, std::string("metadata ") + kKeptKey + ": " + what}; }

}  // namespace

Result<std::string> format_kept(const KeptNames& kept) {
  try {
    return json(kept).dump();
  } catch (const json::exception&) {
    return wrong("a name is not UTF-8");
  }
}

Result<KeptNames> kept_names_of(const SafetensorsHeader& header) {
  KeptNames kept;
  const auto text = header.metadata.find(kKeptKey);
  if (text == header.metadata.end()) return kept;
  bool too_deep = false;
  const auto bounded = [&too_deep](int depth, json::parse_event_t, json&) {
    too_deep = too_deep || depth > 2;
    return !too_deep;
  };
  const json files = json::parse(text->second, bounded, /*allow_exceptions=*/false);
  if (too_deep || !files.is_object()) return wrong("must be an object of lists");
  for (const auto& [file, names] : files.items()) {
    if (!names.is_array()) return wrong(file + ": must be a list of names");
    for (const json& name : names) {
      if (!name.is_string()) return wrong(file + ": must be a list of names");
      kept[file].insert(name.get<std::string>());
    }
  }
  return kept;
}

}  // namespace holdfast::store
