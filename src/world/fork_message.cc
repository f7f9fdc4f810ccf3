#include "world/fork_message.h"

#include <limits>
#include <nlohmann/json.hpp>

namespace holdfast::world {
namespace {

using nlohmann::json;

std::uint64_t whole(const json& object, const char* key, std::uint64_t max) {
  const json& value = object.at(key);  // a larger one is read as a floating-point number, which no integer holds
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > max) {
    throw std::out_of_range(std::string(key) + " out of range");
  }
  return value.get<std::uint64_t>();
}

ForkMessage parse(const json& object) {
  constexpr auto int_max = static_cast<std::uint64_t>(std::numeric_limits<int>::max());
  if (object.contains("forked")) {
    return ForkDone{whole(object, "forked", std::numeric_limits<std::uint64_t>::max()),
                    static_cast<pid_t>(whole(object, "pid", int_max))};
  }
  if (object.contains("failed")) {
    return ForkFailed{whole(object, "failed", std::numeric_limits<std::uint64_t>::max()),
                      object.at("why").get<std::string>()};
  }
  ForkReady ready;
  ready.ready = object.at("ready").get<bool>();
  if (!ready.ready) {
    ready.why = object.at("why").get<std::string>();
    return ready;
  }
  ready.threads = static_cast<int>(whole(object, "threads", int_max));
  ready.version = object.value("version", std::string());
  ready.thread_modules = object.value("thread_modules", std::vector<std::string>());
  return ready;
}

}  // namespace

Result<std::string> encode(const ForkRequest& request) {
  json object = {{"fork", request.id},
                 {"argv", request.argv},
                 {"env", request.env},
                 {"cwd", request.cwd},
                 {"fds", {"out", "err"}}};
  if (request.ring) object["fds"].push_back("ring");
  try {
    std::string text = object.dump();
    if (text.size() <= kForkPacketBytesMax) return text;
    return Error(Code::BadInput, "arguments and environment of " + std::to_string(text.size()) +
                                     " bytes are more than a fork server takes");
  } catch (const json::exception& failure) {
    return Error(Code::BadInput, std::string("arguments or environment: ") + failure.what());
  }
}

Result<ForkMessage> parse_fork_message(std::string_view text) {
  try {
    return parse(json::parse(text));
  } catch (const std::exception& failure) {  // nlohmann's, or ours from above
    return Error(Code::BadInput, std::string("the fork server sent what is not its protocol: ") + failure.what());
  }
}

}  // namespace holdfast::world
