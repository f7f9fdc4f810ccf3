#include "store/sharded_index.h"

#include <nlohmann/json.hpp>
#include <set>

#include "store/json_text.h"
#include "store/safetensors.h"

namespace holdfast::store {
namespace {

constexpr std::size_t kShownBytesMax = 200;
constexpr std::size_t kFileNameBytesMax = 255;

std::string shown(const std::string& text) {
  return text.size() <= kShownBytesMax ? text : text.substr(0, kShownBytesMax) + "...";
}

/// "" where `name` is that of a file right inside a folder, else why it is not.
std::string why_no_file_name(const std::string& name) {
  if (name.empty()) return "is empty";
  if (name.size() > kFileNameBytesMax) return "is longer than 255 bytes";
  if (name == "." || name == ".." || name.find('/') != std::string::npos || name.find('\\') != std::string::npos) {
    return "is not that of a file in the folder of the index";
  }
  for (const char each : name) {
    if (static_cast<unsigned char>(each) < ' ') return "holds a control character";
  }
  return "";
}

/// Follows the two tables that an index has, passes over the rest of `metadata` and of the top.
class IndexSax : public nlohmann::json_sax<nlohmann::json> {
 public:
  const std::string& error() const { return error_; }
  bool complete() const { return map_seen_; }
  ShardedIndex take() && { return std::move(index_); }

  bool start_object(std::size_t) override {
    if (depth_ == 1 && key_ == "weight_map" && std::exchange(map_seen_, true)) return refuse("weight_map twice");
    if (depth_ == 1) table_ = key_;
    if (depth_ == 2 && table_ == "weight_map") return no_file("an object");
    ++depth_;
    return true;
  }
  bool end_object() override {
    if (--depth_ == 1) table_.clear();
    return true;
  }
  bool start_array(std::size_t) override {
    if (!may_be("a list")) return false;
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool key(string_t& key) override {
    key_ = std::move(key);
    return true;
  }

  bool string(string_t& text) override {
    if (depth_ != 2 || table_ != "weight_map") return may_be("a text");
    if (key_.size() > kTensorNameBytesMax) return refuse("a tensor's name is longer than 65535 bytes");
    if (const std::string why = why_no_file_name(text); !why.empty()) {
      return refuse("tensor " + shown(key_) + ": the file name \"" + shown(text) + "\" " + why);
    }
    if (!index_.weight_map.emplace(key_, std::move(text)).second) return refuse("duplicate tensor " + shown(key_));
    return true;
  }
  bool number_unsigned(number_unsigned_t number) override {
    if (depth_ == 2 && table_ == "metadata" && key_ == "total_size") index_.total_size = number;
    return may_be("a number");
  }
  bool number_integer(number_integer_t) override { return may_be("a number"); }
  bool number_float(number_float_t, const string_t&) override { return may_be("a number"); }
  bool null() override { return may_be("null"); }
  bool boolean(bool) override { return may_be("a boolean"); }
  bool binary(binary_t&) override { return may_be("binary"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    return refuse("not JSON at byte " + std::to_string(position));
  }

 private:
  bool refuse(std::string why) {
    if (error_.empty()) error_ = std::move(why);
    return false;
  }
  bool no_file(const std::string& what) {
    return refuse("tensor " + shown(key_) + ": " + what + " where its file's name belongs");
  }
  /// Whether something that is no text and no table may be here.
  bool may_be(const std::string& what) {
    if (depth_ == 0) return refuse(what + " where the index belongs");
    if (depth_ == 1 && key_ == "weight_map") return refuse("weight_map is " + what + ", no table");
    return table_ != "weight_map" || no_file(what);
  }

  ShardedIndex index_;
  std::string key_;
  std::string table_;  ///< the top key whose object this is in
  std::string error_;
  std::size_t depth_ = 0;
  bool map_seen_ = false;
};

}  // namespace

std::vector<std::string> ShardedIndex::files() const {
  std::set<std::string> names;
  for (const auto& [tensor, file] : weight_map) names.insert(file);
  return {names.begin(), names.end()};
}

Result<ShardedIndex> parse_sharded_index(std::string_view text) {
  // The parser takes a NUL for the end of the text and would leave what follows unread.
  if (text.find('\0') != std::string_view::npos) return Error(Code::BadInput, "a NUL byte in the index");
  IndexSax sax;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &sax)) return Error(Code::BadInput, sax.error());
  if (!sax.complete()) return Error(Code::BadInput, "no weight_map: not the index of a model");
  return std::move(sax).take();
}

Result<std::string> format_sharded_index(const ShardedIndex& index) {
  std::string text = "{\n  \"metadata\": {";
  if (index.total_size) text += "\n    \"total_size\": " + std::to_string(*index.total_size) + "\n  ";
  text += "},\n  \"weight_map\": {";
  bool first = true;
  for (const auto& [tensor, file] : index.weight_map) {
    const auto key = json_quote(tensor);
    const auto value = json_quote(file);
    if (!key || !value) return Error(Code::BadInput, "a name in the index is not UTF-8");
    text += (first ? "\n    " : ",\n    ") + *key + ": " + *value;
    first = false;
  }
  return text + (first ? "}\n}\n" : "\n  }\n}\n");
}

}  // namespace holdfast::store
