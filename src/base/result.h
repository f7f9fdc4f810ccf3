// Result<T>: a value or an Error. The world fails by value; bugs stop the program (check.h).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace holdfast {

/// What kind of failure it was, as far as a caller may act on it.
enum class Code {
  NotFound,     ///< the thing named is not there
  Conflict,     ///< somebody else's newer state forbids it (an older epoch, a lower step)
  BadInput,     ///< bytes, flags or files from outside are wrong: exit code 2 at the command line
  Unavailable,  ///< may work later: full disk, refused connection, time-out
  Denied,       ///< permission or secret
  Corrupt,      ///< stored bytes do not verify
  Internal,     ///< anything else the system reported
};

/// Lower-case word for logs and JSON: "not_found", "bad_input", ...
const char* code_name(Code code);

class Error {
 public:
  Error(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  /// The same failure, told from one level up: "doing what: why".
  Error in(const std::string& doing) && { return {code_, doing + ": " + message_}; }

 private:
  Code code_;
  std::string message_;
};

/// The value of a call that only succeeds or fails.
struct Ok {};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  explicit operator bool() const { return state_.index() == 0; }
  bool has_value() const { return state_.index() == 0; }
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  Error& error() & { return std::get<1>(state_); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

using Status = Result<Ok>;

}  // namespace holdfast

/// The value of `expr`, or return its error told as "`doing`: why". A GNU statement expression, as in
/// `const auto step = TRY(dir.newest_step(), "resume");`
#define TRY(expr, doing)                                             \
  ({                                                                 \
    auto try_result = (expr);                                        \
    if (!try_result) return std::move(try_result).error().in(doing); \
    *std::move(try_result);                                          \
  })
