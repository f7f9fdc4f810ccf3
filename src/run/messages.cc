#include "run/messages.h"

#include <optional>

namespace holdfast::run {
namespace {

struct Encoder {
  ByteWriter out;

  template <typename T>
    requires std::is_integral_v<T> || std::is_enum_v<T>
  void field(T& value) {
    out.put(value);
  }
  void field(bool& value) { out.put(static_cast<std::uint8_t>(value)); }
  void field(std::string& value) { out.put_text(value); }
  template <typename First, typename Second>
  void field(std::pair<First, Second>& value) {
    field(value.first);
    field(value.second);
  }
  template <typename T>
  void field(std::vector<T>& values) {
    out.put(static_cast<std::uint32_t>(values.size()));
    for (T& value : values) field(value);
  }
  void field(std::map<std::string, std::string>& values) {
    out.put(static_cast<std::uint32_t>(values.size()));
    for (auto& [key, value] : values) {
      out.put_text(key);
      out.put_text(value);
    }
  }
};

struct Decoder {
  ByteReader in;

  template <typename T>
    requires std::is_integral_v<T> || std::is_enum_v<T>
  void field(T& value) {
    value = in.get<T>();
  }
  void field(bool& value) { value = in.get_bool(); }
  void field(std::string& value) { value = in.get_text(); }
  template <typename First, typename Second>
  void field(std::pair<First, Second>& value) {
    field(value.first);
    field(value.second);
  }
  // A count is believed one element at a time, so a lying one costs no memory.
  template <typename T>
  void field(std::vector<T>& values) {
    for (auto left = in.get<std::uint32_t>(); left > 0 && in.ok(); --left) {
      field(values.emplace_back());
    }
  }
  void field(std::map<std::string, std::string>& values) {
    for (auto left = in.get<std::uint32_t>(); left > 0 && in.ok(); --left) {
      std::string key = in.get_text();
      values.insert_or_assign(std::move(key), in.get_text());
    }
  }
};

template <typename Archive, typename Struct>
void visit_fields(Archive& archive, Struct& message) {
  std::apply([&archive](auto&... each) { (archive.field(each), ...); }, message.fields());
}

template <std::size_t kIndex = 0>
std::optional<Message> make(std::size_t index) {
  if constexpr (kIndex < std::variant_size_v<Message>) {
    if (index == kIndex) return Message(std::in_place_index<kIndex>);
    return make<kIndex + 1>(index);
  } else {
    return std::nullopt;
  }
}

}  // namespace

Bytes encode(Message message) {
  Encoder encoder;
  encoder.out.put(static_cast<std::uint8_t>(message.index()));
  std::visit([&](auto& body) { visit_fields(encoder, body); }, message);
  return std::move(encoder.out).take();
}

Result<Message> decode(BytesView bytes) {
  Decoder decoder{ByteReader(bytes)};
  const auto kind = decoder.in.get<std::uint8_t>();
  std::optional<Message> message = make(kind);
  if (!message || !decoder.in.ok()) return Error(Code::BadInput, "unknown message kind " + std::to_string(kind));
  std::visit([&](auto& body) { visit_fields(decoder, body); }, *message);
  if (!decoder.in.done()) {
    return Error(Code::BadInput, "message of kind " + std::to_string(kind) + " is cut short or has bytes left over");
  }
  return *std::move(message);
}

}  // namespace holdfast::run
