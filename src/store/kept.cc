#include "store/kept.h"

#include <nlohmann/json.hpp>

namespace holdfast::store {
namespace {

using nlohmann::json;

Error wrong(const std::string& what) { return {Code::BadInput, std::string("metadata ") + kKeptKey + ": " + what}; }

/// Nothing where it is no JSON, or deeper: hostile nesting must not cost memory.
json parsed(const std::string& text, int depth_max) {
  bool too_deep = false;
  const auto bounded = [&](int depth, json::parse_event_t, json&) {
    too_deep = too_deep || depth > depth_max;
    return !too_deep;
  };
  json value = json::parse(text, bounded, /*allow_exceptions=*/false);
  return too_deep ? json() : value;
}

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
  const json files = parsed(text->second, 2);
  if (!files.is_object()) return wrong("must be an object of lists");
  for (const auto& [file, names] : files.items()) {
    if (!names.is_array()) return wrong(file + ": must be a list of names");
    for (const json& name : names) {
      if (!name.is_string()) return wrong(file + ": must be a list of names");
      kept[file].insert(name.get<std::string>());
    }
  }
  return kept;
}

std::string format_digests(const Digests& digests) {
  json all = json::object();
  for (const auto& [name, digest] : digests) all[name] = digest_text(digest);
  return all.dump();  // names that were laid out are UTF-8
}

Result<Digests> digests_of(const SafetensorsHeader& header) {
  Digests digests;
  const auto text = header.metadata.find(kDigestsKey);
  if (text == header.metadata.end()) return digests;
  const Error wrong(Code::BadInput, std::string("metadata ") + kDigestsKey + ": must hold 32 hex digits for each name");
  const json all = parsed(text->second, 1);
  if (!all.is_object()) return wrong;
  for (const auto& [name, value] : all.items()) {
    const auto digest = value.is_string() ? parse_digest(value.get<std::string>()) : std::nullopt;
    if (!digest) return wrong;
    digests[name] = *digest;
  }
  return digests;
}

}  // namespace holdfast::store
