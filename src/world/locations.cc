#include "world/locations.h"

#include <chrono>

#include "world/s3_upload.h"
#include "world/url.h"

namespace holdfast::world {
namespace {

std::string first_of(const std::function<const char*(const char*)>& get, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const char* value = get(name); value != nullptr && *value != '\0') return value;
  }
  return "";
}

/// `fallback` where it is not set.
Result<std::uint64_t> count_of(const std::function<const char*(const char*)>& get, const char* name,
                               std::uint64_t fallback, std::uint64_t max) {
  const std::string text = first_of(get, {name});
  if (text.empty()) return fallback;
  const auto count = parse_count(text);
  if (count && *count >= 1 && *count <= max) return *count;
  return Error(Code::BadInput, std::string(name) + " is a number from 1 to " + std::to_string(max));
}

constexpr std::uint64_t kConnectionsMax = 256;
constexpr std::uint64_t kSecondsMax = 3600;
constexpr std::uint64_t kTriesMax = 100;

}  // namespace

Result<RemoteSettings> remote_settings(const std::function<const char*(const char*)>& get) {
  RemoteSettings settings;
  AwsKeys keys{.key_id = first_of(get, {"AWS_ACCESS_KEY_ID"}),
               .secret = first_of(get, {"AWS_SECRET_ACCESS_KEY"}),
               .session_token = first_of(get, {"AWS_SESSION_TOKEN"}),
               .region = ""};
  if (keys.key_id.empty() != keys.secret.empty()) {
    return Error(Code::BadInput, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: set both or none");
  }
  if (!keys.key_id.empty()) settings.s3.keys = std::move(keys);
  settings.s3.endpoint = first_of(get, {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  const std::string region = first_of(get, {"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (!region.empty()) settings.s3.region = region;
  settings.http.certificates = first_of(get, {"SSL_CERT_FILE"});
  const auto connections =
      TRY(count_of(get, "HOLDFAST_REMOTE_CONNECTIONS", settings.files.ranges.connections, kConnectionsMax), "settings");
  settings.files.ranges.connections = static_cast<unsigned>(connections);
  const auto stall = static_cast<std::uint64_t>(settings.http.stall.count());
  settings.http.stall =
      std::chrono::seconds(TRY(count_of(get, "HOLDFAST_REMOTE_STALL_S", stall, kSecondsMax), "settings"));
  const auto tries = TRY(count_of(get, "HOLDFAST_REMOTE_TRIES", settings.http.retry.tries_max, kTriesMax), "settings");
  settings.http.retry.tries_max = static_cast<unsigned>(tries);
  return settings;
}

bool is_remote(const std::string& name) { return is_http_url(name) || is_s3_url(name); }

std::string shown_location(const std::string& name) {
  if (!is_http_url(name)) return name;
  const auto url = parse_http_url(name);
  if (url) return url->shown;
  return name.substr(0, name.find("//") + 2) + "...";
}

std::string without_secrets(std::string text, const std::string& name) {
  const std::string shown = shown_location(name);
  if (shown == name) return text;
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + shown.size())) {
    text.replace(at, name.size(), shown);
  }
  return text;
}

template <typename Call>
auto Locations::at(const std::string& name, Call call) -> decltype(call(std::declval<FileTree&>())) {
  auto place = place_of(name);
  if (!place) return std::move(place).error();
  return call(**place);
}

Locations::Locations(Disk& disk, Random& random, const RemoteSettings& settings)
    : disk_(disk), random_(random), settings_(settings), client_(random, settings.http) {}

Result<std::unique_ptr<ReadableFile>> Locations::open(const std::string& name) {
  if (is_http_url(name)) {
    HttpRequest request;
    request.url = TRY(parse_http_url(name), shown_location(name));
    std::string shown = request.url.shown;
    return open_remote_file(client_, std::move(request), std::move(shown), settings_.files);
  }
  return at(name, [&](FileTree& place) { return place.open(name); });
}

unsigned Locations::writes_at_a_time(const std::string& name, unsigned threads) const {
  return is_remote(name) ? threads : disk_.writes_at_a_time(name, threads);
}

std::uint64_t Locations::piece_bytes(const std::string& name, std::uint64_t total) const {
  return is_remote(name) ? s3_piece_bytes(total) : disk_.piece_bytes(name, total);
}

Result<std::unique_ptr<NewFile>> Locations::begin(const std::string& name, const std::string& aside,
                                                  const Pieces& pieces) {
  return at(name, [&](FileTree& place) { return place.begin(name, aside, pieces); });
}

Status Locations::write_new(const std::string& name, BytesView bytes) {
  return at(name, [&](FileTree& place) { return place.write_new(name, bytes); });
}

Status Locations::remove(const std::string& name) {
  return at(name, [&](FileTree& place) { return place.remove(name); });
}

Status Locations::remove_dir(const std::string& name) {
  return at(name, [&](FileTree& place) { return place.remove_dir(name); });
}

Status Locations::make_dirs(const std::string& name) {
  return at(name, [&](FileTree& place) { return place.make_dirs(name); });
}

Status Locations::sync_dir(const std::string& name) {
  return at(name, [&](FileTree& place) { return place.sync_dir(name); });
}

Status Locations::sync_path(const std::string& name) {
  return at(name, [&](FileTree& place) { return place.sync_path(name); });
}

Result<std::vector<std::string>> Locations::list(const std::string& name) {
  return at(name, [&](FileTree& place) { return place.list(name); });
}

bool Locations::exists(const std::string& name) {
  const auto place = place_of(name);
  return place && (*place)->exists(name);
}

Result<FileTree*> Locations::place_of(const std::string& name) {
  if (is_http_url(name)) {
    return Error(Code::BadInput, shown_location(name) + ": can't write there; save to a path or to s3://bucket/key");
  }
  if (!is_s3_url(name)) return static_cast<FileTree*>(&disk_);
  const std::string of = TRY(parse_s3_name(name), "s3")
  .bucket;
  const std::lock_guard lock(mutex_);
  Bucket& bucket = buckets_[of];
  if (bucket.tree == nullptr) {
    bucket.store = make_s3_store(client_, random_, settings_.s3, of, settings_.files);
    bucket.tree = std::make_unique<ObjectTree>(*bucket.store, "s3://" + of + "/", disk_.threads());
  }
  return static_cast<FileTree*>(bucket.tree.get());
}

}  // namespace holdfast::world
