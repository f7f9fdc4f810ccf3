// What the metadata of an incremental shard tells: digests of its tensors, and which others lie in files of older
// checkpoints. Format: docs/format-checkpoint.md.
#pragma once

#include <map>
#include <set>
#include <string>

#include "base/result.h"
#include "store/digest.h"
#include "store/safetensors.h"

namespace holdfast::store {

constexpr const char* kDigestsKey = "holdfast.digests";
constexpr const char* kKeptKey = "holdfast.kept";

/// By file, "step-000000000050-epoch-3/shard-0-of-4.safetensors": names of the tensors that count.
using KeptNames = std::map<std::string, std::set<std::string>>;

/// Errors: BadInput (names that are not UTF-8).
Result<std::string> format_kept(const KeptNames& kept);

/// Those of `header`: none where it has none. Errors: BadInput (not as format_kept writes it).
Result<KeptNames> kept_names_of(const SafetensorsHeader& header);

/// By tensor of the file.
using Digests = std::map<std::string, Digest>;

std::string format_digests(const Digests& digests);

/// Those of `header`: none where it was not written incrementally. Errors: BadInput (not as format_digests writes it).
Result<Digests> digests_of(const SafetensorsHeader& header);

}  // namespace holdfast::store
