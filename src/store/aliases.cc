#include "store/aliases.h"

#include <nlohmann/json.hpp>

#include "store/json_text.h"

namespace holdfast::store {
namespace {

/// Takes one object of texts, and nothing else.
class AliasesSax : public nlohmann::json_sax<nlohmann::json> {
 public:
  Aliases take() && { return std::move(aliases_); }

  bool start_object(std::size_t) override { return !std::exchange(open_, true); }
  bool key(string_t& key) override {
    key_ = std::move(key);
    return true;
  }
  bool string(string_t& text) override { return open_ && aliases_.emplace(key_, std::move(text)).second; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return false; }
  bool end_array() override { return false; }
  bool number_unsigned(number_unsigned_t) override { return false; }
  bool number_integer(number_integer_t) override { return false; }
  bool number_float(number_float_t, const string_t&) override { return false; }
  bool null() override { return false; }
  bool boolean(bool) override { return false; }
  bool binary(binary_t&) override { return false; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

 private:
  Aliases aliases_;
  std::string key_;
  bool open_ = false;
};

}  // namespace

Result<std::string> format_aliases(const Aliases& aliases) {
  std::string text = "{";
  for (const auto& [alias, stored] : aliases) {
    const auto from = json_quote(alias);
    const auto to = json_quote(stored);
    if (!from || !to) return Error(Code::BadInput, "a tied tensor's name is not UTF-8");
    if (text.size() > 1) text += ',';
    text += *from + ':' + *to;
  }
  return text + '}';
}

Result<Aliases> parse_aliases(std::string_view text) {
  AliasesSax sax;
  if (text.find('\0') != std::string_view::npos || !nlohmann::json::sax_parse(text.begin(), text.end(), &sax)) {
    return Error(Code::BadInput, std::string("metadata ") + kAliasesKey + " is no table of names");
  }
  return std::move(sax).take();
}

Result<Aliases> aliases_of(const std::map<std::string, std::string>& metadata) {
  const auto text = metadata.find(kAliasesKey);
  return text == metadata.end() ? Result<Aliases>(Aliases{}) : parse_aliases(text->second);
}

}  // namespace holdfast::store
