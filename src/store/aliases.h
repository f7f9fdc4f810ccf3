// Second names of tied tensors, as a tensor file's metadata holds them. Format: docs/format-tensors.md.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace holdfast::store {

constexpr const char* kAliasesKey = "holdfast.aliases";

/// Second name -> the name that the tensor is stored under.
using Aliases = std::map<std::string, std::string>;

/// Errors: BadInput (a name that is not UTF-8).
Result<std::string> format_aliases(const Aliases& aliases);

/// Errors: BadInput (no table of names).
Result<Aliases> parse_aliases(std::string_view text);

/// Those of a file; none where its metadata has no such key. Errors: as parse_aliases.
Result<Aliases> aliases_of(const std::map<std::string, std::string>& metadata);

}  // namespace holdfast::store
