#include "store/pickle.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "store/shown.h"

namespace holdfast::store {
namespace {

constexpr std::uint64_t kMemoryPerByte = 32;
constexpr std::uint64_t kMemoryFree = std::uint64_t{64} << 10U;
constexpr std::size_t kGlobalBytesMax = 500;
constexpr std::uint32_t kTextBytesMax = 0xFFFF'FFFF;

bool has_items(PickleKind kind) {
  return kind == PickleKind::Tuple || kind == PickleKind::List || kind == PickleKind::Set || kind == PickleKind::Dict ||
         kind == PickleKind::Call || kind == PickleKind::Persistent;
}

}  // namespace

std::string_view Pickle::text(const PickleValue& value) const {
  if (value.kind != PickleKind::Text && value.kind != PickleKind::Bytes) return {};
  return as_text(BytesView(bytes_).subspan(value.at, value.size));
}

std::span<const PickleValue> Pickle::items(const PickleValue& value) const {
  if (!has_items(value.kind)) return {};
  return lists_[value.at];
}

std::string_view Pickle::global(const PickleValue& value) const {
  return value.kind == PickleKind::Global ? std::string_view(globals_[value.at]) : std::string_view();
}

std::string_view Pickle::called(const PickleValue& value) const {
  return value.kind == PickleKind::Call ? global(items(value)[0]) : std::string_view();
}

std::span<const PickleValue> Pickle::arguments(const PickleValue& value) const {
  return value.kind == PickleKind::Call ? items(items(value)[1]) : std::span<const PickleValue>();
}

/// Follows the opcodes: a stack of values, marks in it, and a memo. Each method is false where it has set `error_`.
class PickleMachine {
 public:
  PickleMachine(Pickle& out, const std::function<bool(std::string_view)>& allowed)
      : out_(out), in_(out.bytes_), allowed_(allowed), budget_(kMemoryFree + kMemoryPerByte * in_.size()) {}

  Status run() {
    if (in_.size() < 2 || in_[0] != std::byte{0x80}) {
      return Error(Code::BadInput, "not a pickle of protocol 2 or later");
    }
    while (!stopped_) {
      begin_ = at_;
      const std::optional<std::uint8_t> opcode = number<std::uint8_t>();
      if (!opcode || !step(*opcode)) return Error(Code::BadInput, "byte " + std::to_string(begin_) + ": " + error_);
    }
    if (at_ != in_.size()) {
      return Error(Code::BadInput, "it ends at byte " + std::to_string(at_) + ", but " +
                                       std::to_string(in_.size() - at_) + " more follow");
    }
    return Ok{};
  }

 private:
  using Kind = PickleKind;

  bool step(std::uint8_t opcode) {
    switch (opcode) {
      case 0x80: return protocol();
      case 0x95: return number<std::uint64_t>().has_value();  // of a frame: how many bytes belong together
      case '.': return stop();
      case '(': return charge(sizeof(std::size_t)) && (marks_.push_back(stack_.size()), true);
      case '0': return pop_or_mark();
      case '1': return marked() && pop(to_mark());
      case '2': return need(1) && push(PickleValue(stack_.back()));
      case 'N': return push({});
      case 0x88: return push({Kind::Bool, 0, 1});
      case 0x89: return push({Kind::Bool, 0, 0});
      case 'J': return integer(number<std::int32_t>());
      case 'K': return integer(number<std::uint8_t>());
      case 'M': return integer(number<std::uint16_t>());
      case 0x8A: return long_integer(number<std::uint8_t>());
      case 0x8B: return long_integer(number<std::uint32_t>());
      case 'G': return real();
      case 'X':
      case 'T': return text(Kind::Text, number<std::uint32_t>());
      case 0x8C:
      case 'U': return text(Kind::Text, number<std::uint8_t>());
      case 0x8D: return text(Kind::Text, number<std::uint64_t>());
      case 'B': return text(Kind::Bytes, number<std::uint32_t>());
      case 'C': return text(Kind::Bytes, number<std::uint8_t>());
      case 0x8E:
      case 0x96: return text(Kind::Bytes, number<std::uint64_t>());
      case ')': return gather(Kind::Tuple, 0);
      case 0x85: return gather(Kind::Tuple, 1);
      case 0x86: return gather(Kind::Tuple, 2);
      case 0x87: return gather(Kind::Tuple, 3);
      case ']': return gather(Kind::List, 0);
      case '}': return gather(Kind::Dict, 0);
      case 0x8F: return gather(Kind::Set, 0);
      case 't': return marked() && gather(Kind::Tuple, to_mark());
      case 'l': return marked() && gather(Kind::List, to_mark());
      case 'd': return marked() && gather_pairs(to_mark());
      case 0x91: return marked() && gather(Kind::Set, to_mark());
      case 'a': return extend(Kind::List, 1);
      case 'e': return marked() && extend(Kind::List, to_mark());
      case 0x90: return marked() && extend(Kind::Set, to_mark());
      case 's': return extend(Kind::Dict, 2);
      case 'u': return marked() && extend(Kind::Dict, to_mark());
      case 'c': return global_line();
      case 0x93: return stack_global();
      case 'R':
      case 0x81: return call();
      case 'b': return build();
      case 'Q': return gather(Kind::Persistent, 1);
      case 'q': return put(number<std::uint8_t>());
      case 'r': return put(number<std::uint32_t>());
      case 0x94: return put(memo_.size());
      case 'h': return get(number<std::uint8_t>());
      case 'j': return get(number<std::uint32_t>());
      default: return fail("opcode " + std::to_string(opcode) + " has no place in a state dict");
    }
  }

  bool fail(std::string why) {
    if (error_.empty()) error_ = std::move(why);
    return false;
  }

  /// Counts memory that is about to be used.
  bool charge(std::uint64_t bytes) {
    spent_ += bytes;
    return spent_ <= budget_ || fail("needs more memory than a state dict of its size can");
  }

  template <typename Number>
  std::optional<Number> number() {
    Number value{};
    if (in_.size() - at_ < sizeof value) {
      fail("the pickle is cut off");
      return std::nullopt;
    }
    std::memcpy(&value, in_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  bool need(std::size_t values) {
    return stack_.size() - floor() >= values || fail("takes more values than there are");
  }
  bool marked() { return !marks_.empty() || fail("goes back to a mark, but none is set"); }
  /// Takes the last mark away; how many values lie above it.
  std::size_t to_mark() {
    const std::size_t count = stack_.size() - marks_.back();
    marks_.pop_back();
    return count;
  }
  bool pop(std::size_t count) {
    if (!need(count)) return false;
    stack_.resize(stack_.size() - count);
    return true;
  }

  bool push(PickleValue value) {
    if (stack_.size() == stack_max_) {
      if (!charge(sizeof value)) return false;
      ++stack_max_;
    }
    stack_.push_back(value);
    return true;
  }

  bool pop_or_mark() {
    if (!marks_.empty() && marks_.back() == stack_.size()) {
      marks_.pop_back();
      return true;
    }
    return pop(1);
  }

  bool protocol() {
    const auto version = number<std::uint8_t>();
    if (!version) return false;
    if (begin_ != 0) return fail("a second beginning");
    return (*version >= 2 && *version <= 5) || fail("protocol " + std::to_string(*version) + ", 2 to 5 are known");
  }

  bool stop() {
    if (stack_.size() != 1 || !marks_.empty()) return fail("ends with more or less than one value");
    out_.root_ = stack_.back();
    return stopped_ = true;
  }

  template <typename Number>
  bool integer(std::optional<Number> value) {
    return value && push({Kind::Int, 0, static_cast<std::uint64_t>(static_cast<std::int64_t>(*value))});
  }

  template <typename Number>
  bool long_integer(std::optional<Number> size) {
    if (!size) return false;
    if (*size > in_.size() - at_) return fail("the pickle is cut off");
    const BytesView raw = in_.subspan(at_, *size);
    at_ += raw.size();
    if (raw.size() > sizeof(std::uint64_t)) return push({Kind::LongInt, 0, 0});
    std::uint64_t bits = !raw.empty() && (raw.back() & std::byte{0x80}) != std::byte{0} ? ~std::uint64_t{0} : 0;
    if (!raw.empty()) std::memcpy(&bits, raw.data(), raw.size());
    return push({Kind::Int, 0, bits});
  }

  bool real() {
    const auto bits = number<std::uint64_t>();
    return bits && push({Kind::Float, 0, __builtin_bswap64(*bits)});
  }

  template <typename Number>
  bool text(Kind kind, std::optional<Number> size) {
    if (!size) return false;
    if (*size > in_.size() - at_ || *size > kTextBytesMax) return fail("a text ends beyond the pickle");
    const std::uint64_t begin = at_;
    at_ += *size;
    return push({kind, static_cast<std::uint32_t>(*size), begin});
  }

  /// The last `count` values become the items of a new one.
  bool gather(Kind kind, std::size_t count) {
    constexpr std::uint64_t kListBytes = 2 * sizeof(std::vector<PickleValue>);  // with what the allocator adds
    if (!need(count) || !charge(kListBytes + count * sizeof(PickleValue))) return false;
    const auto first = stack_.end() - static_cast<std::ptrdiff_t>(count);
    out_.lists_.emplace_back(first, stack_.end());
    stack_.erase(first, stack_.end());
    return push({kind, 0, out_.lists_.size() - 1});
  }

  bool gather_pairs(std::size_t count) {
    return (count % 2 == 0 || fail("a dict with a key but no value")) && gather(Kind::Dict, count);
  }

  /// The last `count` values become further items of the one below them.
  bool extend(Kind kind, std::size_t count) {
    if (!need(count + 1)) return false;
    if (kind == Kind::Dict && count % 2 != 0) return fail("a dict with a key but no value");
    const auto first = stack_.end() - static_cast<std::ptrdiff_t>(count);
    if ((first - 1)->kind != kind) return fail("adds items to something that can't have any");
    if (!charge(2 * count * sizeof(PickleValue))) return false;  // a vector may have twice the room that it uses
    auto& items = out_.lists_[(first - 1)->at];
    items.insert(items.end(), first, stack_.end());
    stack_.erase(first, stack_.end());
    return true;
  }

  bool global_line() {
    std::string name;
    for (const char between : {' ', '\0'}) {
      const std::string_view rest = as_text(in_.subspan(at_));
      const std::size_t end = rest.find('\n');
      if (end == std::string_view::npos) return fail("the pickle is cut off");
      name += rest.substr(0, std::min(end, kGlobalBytesMax));
      if (between != '\0') name += between;
      at_ += end + 1;
    }
    return push_global(name);
  }

  bool stack_global() {
    if (!need(2)) return false;
    const PickleValue name = stack_.back();
    const PickleValue module = stack_[stack_.size() - 2];
    if (name.kind != Kind::Text || module.kind != Kind::Text) return fail("a global whose name is no text");
    stack_.resize(stack_.size() - 2);
    return push_global(std::string(out_.text(module).substr(0, kGlobalBytesMax)) + ' ' +
                       std::string(out_.text(name).substr(0, kGlobalBytesMax)));
  }

  bool push_global(const std::string& name) {
    const auto known = globals_.find(name);
    if (known != globals_.end()) return push({Kind::Global, 0, known->second});
    if (!allowed_(name)) {
      std::string dotted = shown(name);
      std::replace(dotted.begin(), dotted.end(), ' ', '.');
      return fail("names " + dotted + ", which is no part of plain tensors; nothing of it was run");
    }
    if (!charge(4 * (name.size() + sizeof(std::string)))) return false;
    globals_.emplace(name, out_.globals_.size());
    out_.globals_.push_back(name);
    return push({Kind::Global, 0, out_.globals_.size() - 1});
  }

  bool call() {
    if (!need(2)) return false;
    if (stack_.back().kind != Kind::Tuple) return fail("a call without arguments");
    const PickleValue callee = stack_[stack_.size() - 2];
    if (callee.kind != Kind::Global) return fail("calls something that is no global");
    if (out_.global(callee) == "collections OrderedDict" && out_.items(stack_.back()).empty()) {
      stack_.resize(stack_.size() - 2);
      return gather(Kind::Dict, 0);
    }
    return gather(Kind::Call, 2);
  }

  bool build() {
    if (!need(2)) return false;
    const PickleValue state = stack_.back();
    const PickleValue target = stack_[stack_.size() - 2];
    stack_.pop_back();
    if (target.kind == Kind::Dict) return true;  // the attributes of an OrderedDict hold no tensors
    if (target.kind != Kind::Call) return fail("gives a state to something that can't have one");
    auto& items = out_.lists_[target.at];
    if (items.size() != 2) return fail("gives a state twice");
    if (!charge(2 * sizeof state)) return false;
    items.push_back(state);
    return true;
  }

  template <typename Number>
  bool put(std::optional<Number> slot) {
    return slot && put(static_cast<std::size_t>(*slot));
  }
  bool put(std::size_t slot) {
    if (!need(1)) return false;
    if (slot > in_.size()) return fail("more is remembered than the pickle can hold");
    if (slot >= memo_.size()) {
      if (!charge((slot + 1 - memo_.size()) * sizeof(memo_[0]))) return false;
      memo_.resize(slot + 1);
    }
    memo_[slot] = stack_.back();
    return true;
  }

  template <typename Number>
  bool get(std::optional<Number> slot) {
    if (!slot) return false;
    if (*slot >= memo_.size() || !memo_[*slot]) return fail("recalls what was never remembered");
    return push(PickleValue(*memo_[*slot]));
  }

  Pickle& out_;
  BytesView in_;
  const std::function<bool(std::string_view)>& allowed_;
  std::uint64_t budget_;
  std::uint64_t spent_ = 0;
  std::size_t at_ = 0;
  std::size_t begin_ = 0;  ///< of the opcode at work
  std::vector<PickleValue> stack_;
  std::size_t stack_max_ = 0;
  std::vector<std::size_t> marks_;
  std::vector<std::optional<PickleValue>> memo_;
  std::unordered_map<std::string, std::uint64_t> globals_;
  std::string error_;
  bool stopped_ = false;
};

Result<Pickle> parse_pickle(Bytes bytes, const std::function<bool(std::string_view)>& allowed) {
  Pickle pickle;
  pickle.bytes_ = std::move(bytes);
  Status done = PickleMachine(pickle, allowed).run();
  if (!done) return std::move(done).error().in("pickle");
  return pickle;
}

}  // namespace holdfast::store
