// Writes a pickle of plain values, opcode by opcode, protocol 2.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/bytes.h"

namespace holdfast::store {

class PickleWriter {
 public:
  PickleWriter();
  PickleWriter& none() { return op('N'); }
  PickleWriter& truth(bool value) { return op(value ? '\x88' : '\x89'); }
  PickleWriter& integer(std::uint64_t value);
  PickleWriter& text(std::string_view value);
  /// A tuple of integers.
  PickleWriter& counts(std::span<const std::uint64_t> values);
  PickleWriter& global(std::string_view module, std::string_view name);
  /// Begins what `tuple`, `append_all` or `set_all` ends.
  PickleWriter& mark() { return op('('); }
  PickleWriter& tuple() { return op('t'); }
  PickleWriter& empty_tuple() { return op(')'); }
  PickleWriter& list() { return op(']'); }
  PickleWriter& append_all() { return op('e'); }
  PickleWriter& dict() { return op('}'); }
  PickleWriter& set_all() { return op('u'); }
  /// Calls the global below the tuple on top.
  PickleWriter& call() { return op('R'); }
  /// Makes an object of the class below the tuple on top.
  PickleWriter& object() { return op('\x81'); }
  /// Gives the object below the state on top.
  PickleWriter& state() { return op('b'); }
  PickleWriter& persistent() { return op('Q'); }
  Bytes finish() &&;

 private:
  PickleWriter& op(char code);
  ByteWriter out_;
};

}  // namespace holdfast::store
