// What a Python pickle holds, as plain values. Reading one runs no code: a global is only its name, a call only what
// would be called with what; and a name that the caller did not allow is refused.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace holdfast::store {

enum class PickleKind : std::uint8_t {
  None,
  Bool,
  Int,      ///< of 64 bits
  LongInt,  ///< of more bits; its value is not kept
  Float,
  Text,
  Bytes,
  Tuple,
  List,
  Set,
  Dict,    ///< items: key, value, key, value; a collections.OrderedDict is one too
  Global,  ///< a name
  Call,    ///< items: what is called, its arguments (a tuple), and the state that it is given, where it is given one
  Persistent,  ///< items: the id of something that is kept outside the pickle
};

/// Means something only together with the pickle that it is from.
struct PickleValue {
  PickleKind kind = PickleKind::None;
  std::uint32_t size = 0;  ///< of a text
  std::uint64_t at = 0;    ///< the number's bits, where a text begins, or which of the lists of items
};

class Pickle {
 public:
  const PickleValue& root() const { return root_; }
  std::uint64_t bytes() const { return bytes_.size(); }

  /// Of an Int.
  static std::int64_t integer(const PickleValue& value) { return static_cast<std::int64_t>(value.at); }
  /// Of a Bool.
  static bool truth(const PickleValue& value) { return value.at != 0; }
  /// Of a Text or Bytes. Not checked to be UTF-8.
  std::string_view text(const PickleValue& value) const;
  /// Of a Tuple, List, Set, Dict, Call or Persistent; none of any other. A value may hold itself.
  std::span<const PickleValue> items(const PickleValue& value) const;
  /// "module name" of a Global; "" of any other.
  std::string_view global(const PickleValue& value) const;
  /// "module name" of what is called; "" where it is no Call of a Global.
  std::string_view called(const PickleValue& value) const;
  /// Of a Call; none of any other.
  std::span<const PickleValue> arguments(const PickleValue& value) const;

 private:
  friend class PickleMachine;
  friend Result<Pickle> parse_pickle(Bytes bytes, const std::function<bool(std::string_view)>& allowed);
  Bytes bytes_;
  PickleValue root_;
  std::vector<std::vector<PickleValue>> lists_;
  std::vector<std::string> globals_;
};

/// Protocols 2 to 5, whole: nothing may follow. `allowed` is asked for each "module name". Needs no more memory than 32
/// times the pickle's size and a little. Errors: BadInput, naming the byte.
Result<Pickle> parse_pickle(Bytes bytes, const std::function<bool(std::string_view)>& allowed);

}  // namespace holdfast::store
