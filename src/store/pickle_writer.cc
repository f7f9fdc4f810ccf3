#include "store/pickle_writer.h"

#include <limits>

namespace holdfast::store {
namespace {

constexpr std::uint8_t kProtocol = 2;

}  // namespace

PickleWriter::PickleWriter() {
  op('\x80');
  out_.put(kProtocol);
}

PickleWriter& PickleWriter::op(char code) {
  out_.put(code);
  return *this;
}

PickleWriter& PickleWriter::integer(std::uint64_t value) {
  if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
    op('J');
    out_.put(static_cast<std::int32_t>(value));
    return *this;
  }
  const bool wide = value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  op('\x8A');
  out_.put(static_cast<std::uint8_t>(wide ? sizeof value + 1 : sizeof value));
  out_.put(value);
  if (wide) out_.put(std::uint8_t{0});  // so that the highest bit is no sign
  return *this;
}

PickleWriter& PickleWriter::text(std::string_view value) {
  op('X');
  out_.put_text(value);
  return *this;
}

PickleWriter& PickleWriter::counts(std::span<const std::uint64_t> values) {
  mark();
  for (const std::uint64_t value : values) integer(value);
  return tuple();
}

PickleWriter& PickleWriter::global(std::string_view module, std::string_view name) {
  op('c');
  out_.put_bytes(as_bytes(module));
  out_.put('\n');
  out_.put_bytes(as_bytes(name));
  out_.put('\n');
  return *this;
}

Bytes PickleWriter::finish() && {
  op('.');
  return std::move(out_).take();
}

}  // namespace holdfast::store
