#include "store/manifest.h"

#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/crc32c.h"
#include "store/checkpoint_id.h"

namespace holdfast::store {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::size_t kHexDigits = 8;
constexpr std::string_view kOpening = "{\"holdfast_checkpoint\":";
constexpr std::string_view kChecksum = ",\"crc32c\":\"";
constexpr std::string_view kBody = "\",\"body\":\n";
constexpr std::string_view kClosing = "\n}\n";

std::string hex(std::uint32_t value) {
  std::string text(kHexDigits, '0');
  for (std::size_t i = 0; i < kHexDigits; ++i) text[i] = "0123456789abcdef"[(value >> (28 - 4 * i)) & 15U];
  return text;
}

/// Lower case only: one value has one spelling, so that no changed byte goes unnoticed.
Result<std::uint32_t> from_hex(std::string_view text) {
  std::uint32_t value = 0;
  for (const char digit : text) {
    const std::size_t four = std::string_view("0123456789abcdef").find(digit);
    if (four == std::string_view::npos) return Error(Code::BadInput, "a checksum is not 8 lower-case hex digits");
    value = value << 4U | static_cast<std::uint32_t>(four);
  }
  return value;
}

Error body_error(const std::string& where, const std::string& what) {
  return {Code::BadInput, "body: " + where + ": " + what};
}

Status check_shard(const ShardRecord& shard, Rank writer, std::uint32_t writers) {
  const std::string wanted = shard_file_name(writer, writers);
  if (shard.file != wanted) return body_error("shards", "expected " + wanted + " in place " + std::to_string(writer));
  if (shard.kept.size() > kKeptFilesMax) return body_error(shard.file, "more than 65536 files are kept");
  for (const KeptFile& kept : shard.kept) {
    const bool ours = parse_checkpoint_name(kept.checkpoint) && kept.file.starts_with("shard-") &&
                      kept.file.find('/') == std::string::npos;
    if (!ours) return body_error("kept", "not a shard of a checkpoint");
  }
  return Ok{};
}

/// The value of `key`, of the wanted kind.
template <typename Is>
Result<const json*> field(const json& object, const char* key, Is is, const char* kind) {
  const auto found = object.find(key);
  if (found == object.end()) return body_error(key, "missing");
  if (!is(*found)) return body_error(key, std::string("must be ") + kind);
  return &*found;
}

Result<std::uint64_t> count_field(const json& object, const char* key, std::uint64_t at_most) {
  const json* value = TRY(field(object, key, [](const json& v) { return v.is_number_unsigned(); }, "a count"), "read");
  const auto number = value->get<std::uint64_t>();
  if (number > at_most) return body_error(key, "must be at most " + std::to_string(at_most));
  return number;
}

Result<std::string> text_field(const json& object, const char* key) {
  const json* value = TRY(field(object, key, [](const json& v) { return v.is_string(); }, "a text"), "read");
  return value->get<std::string>();
}

Result<std::uint32_t> crc_field(const json& object) {
  const std::string crc = TRY(text_field(object, "header_crc32c"), "read");
  if (crc.size() != kHexDigits) return body_error("header_crc32c", "must be 8 hex digits");
  return from_hex(crc);
}

Result<KeptFile> kept_from_json(const json& object) {
  if (!object.is_object() || object.size() != 4) return body_error("kept", "each must be an object of four keys");
  KeptFile kept;
  kept.checkpoint = TRY(text_field(object, "checkpoint"), "kept");
  kept.file = TRY(text_field(object, "file"), "kept");
  kept.bytes = TRY(count_field(object, "bytes", UINT64_MAX), kept.file);
  kept.header_crc = TRY(crc_field(object), kept.file);
  return kept;
}

const auto kIsList = [](const json& value) { return value.is_array(); };

Result<ShardRecord> shard_from_json(const json& object) {
  if (!object.is_object() || object.size() != 4) return body_error("shards", "each must be an object of four keys");
  ShardRecord shard;
  shard.file = TRY(text_field(object, "file"), "shards");
  shard.bytes = TRY(count_field(object, "bytes", UINT64_MAX), shard.file);
  shard.header_crc = TRY(crc_field(object), shard.file);
  const json* kept = TRY(field(object, "kept", kIsList, "a list"), shard.file);
  for (const json& each : *kept) shard.kept.push_back(TRY(kept_from_json(each), shard.file));
  return shard;
}

Result<Manifest> body_from_text(std::string_view body) {
  // A body is six levels deep at most; the callback keeps hostile nesting from costing memory.
  bool too_deep = false;
  const auto bounded = [&too_deep](int depth, json::parse_event_t, json&) {
    too_deep = too_deep || depth > 8;
    return !too_deep;
  };
  const json object = json::parse(body, bounded, /*allow_exceptions=*/false);
  if (too_deep) return body_error("JSON", "nested deeper than a manifest goes");
  if (!object.is_object()) return body_error("JSON", "not an object");
  if (object.size() != 6) return body_error("JSON", "must have six keys, has " + std::to_string(object.size()));
  Manifest manifest;
  manifest.run_id = TRY(text_field(object, "run_id"), "read");
  manifest.step = static_cast<Step>(TRY(count_field(object, "step", INT64_MAX), "read"));
  manifest.epoch = TRY(count_field(object, "epoch", UINT64_MAX), "read");
  manifest.world_size = static_cast<std::uint32_t>(TRY(count_field(object, "world_size", UINT32_MAX), "read"));
  manifest.structure = TRY(text_field(object, "structure"), "read");
  const json* shards = TRY(field(object, "shards", kIsList, "a list"), "read");
  for (const json& shard : *shards) manifest.shards.push_back(TRY(shard_from_json(shard), "read"));
  TRY(check_manifest(manifest), "read");
  return manifest;
}

Error changed() {
  return {Code::Corrupt,
          "the manifest does not match its own checksum: it was changed, cut or damaged; restore it from a copy or "
          "resume from an older checkpoint"};
}

}  // namespace

Status check_manifest(const Manifest& manifest) {
  if (manifest.run_id.size() > kRunIdBytesMax) return body_error("run_id", "longer than 256 bytes");
  if (manifest.step < 0) return body_error("step", "must not be negative");
  if (manifest.world_size == 0) return body_error("world_size", "must be at least 1");
  if (manifest.structure.size() > kStructureBytesMax) return body_error("structure", "longer than 64 MiB");
  if (manifest.shards.empty() || manifest.shards.size() > kShardsMax) {
    return body_error("shards", "must be 1 to " + std::to_string(kShardsMax));
  }
  const auto writers = static_cast<std::uint32_t>(manifest.shards.size());
  for (Rank writer = 0; writer < writers; ++writer) {
    TRY(check_shard(manifest.shards[writer], writer, writers), "manifest");
  }
  return Ok{};
}

std::vector<KeptFile> kept_files(const Manifest& manifest) {
  std::vector<KeptFile> all;
  std::set<std::tuple<std::string, std::string, std::uint64_t, std::uint32_t>> seen;
  for (const ShardRecord& shard : manifest.shards) {
    for (const KeptFile& kept : shard.kept) {
      if (seen.emplace(kept.checkpoint, kept.file, kept.bytes, kept.header_crc).second) all.push_back(kept);
    }
  }
  return all;
}

std::string wrap_manifest_body(std::string_view body) {
  std::string text(kOpening);
  text += std::to_string(kManifestVersion);
  text += kChecksum;
  text += hex(crc32c(as_bytes(body)));
  text += kBody;
  text += body;
  text += kClosing;
  return text;
}

Result<std::string> manifest_to_text(const Manifest& manifest) {
  TRY(check_manifest(manifest), "write a manifest");
  ordered_json shards = ordered_json::array();
  for (const ShardRecord& shard : manifest.shards) {
    ordered_json kept = ordered_json::array();
    for (const KeptFile& file : shard.kept) {
      kept.push_back({{"checkpoint", file.checkpoint},
                      {"file", file.file},
                      {"bytes", file.bytes},
                      {"header_crc32c", hex(file.header_crc)}});
    }
    shards.push_back({{"file", shard.file},
                      {"bytes", shard.bytes},
                      {"header_crc32c", hex(shard.header_crc)},
                      {"kept", std::move(kept)}});
  }
  const ordered_json body = {{"run_id", manifest.run_id},       {"step", manifest.step},
                             {"epoch", manifest.epoch},         {"world_size", manifest.world_size},
                             {"structure", manifest.structure}, {"shards", std::move(shards)}};
  try {
    std::string text = wrap_manifest_body(body.dump());
    if (text.size() > kManifestBytesMax) return Error(Code::BadInput, "the manifest is larger than 256 MiB");
    return text;
  } catch (const json::exception&) {
    return Error(Code::BadInput, "run_id or structure is not UTF-8");
  }
}

Result<Manifest> manifest_from_text(std::string_view text) {
  // The frame is compared byte by byte: what the checksum does not cover has exactly one spelling.
  if (!text.starts_with(kOpening)) return changed();
  const std::size_t version_end = text.find(kChecksum);
  if (version_end == std::string_view::npos) return changed();
  const std::string_view version = text.substr(kOpening.size(), version_end - kOpening.size());
  if (version.size() > 10 || version.find_first_not_of("0123456789") != std::string_view::npos) return changed();
  if (version != std::to_string(kManifestVersion)) {
    return Error(Code::BadInput, "manifest version " + std::string(version) + ", this Holdfast reads " +
                                     std::to_string(kManifestVersion) + ": use the Holdfast that wrote it");
  }
  const std::string_view rest = text.substr(version_end + kChecksum.size());
  const std::size_t frame = kHexDigits + kBody.size() + kClosing.size();
  if (rest.size() < frame || !rest.ends_with(kClosing) || rest.substr(kHexDigits, kBody.size()) != kBody) {
    return changed();
  }
  const std::string_view body = rest.substr(kHexDigits + kBody.size(), rest.size() - frame);
  if (rest.substr(0, kHexDigits) != hex(crc32c(as_bytes(body)))) return changed();
  return body_from_text(body);
}

}  // namespace holdfast::store
