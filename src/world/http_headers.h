// The headers of an HTTP answer, and what those mean that Holdfast goes by. Anything a server sends is taken in.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::world {

/// The head of one answer, line by line.
class HttpHead {
 public:
  int status() const { return status_; }  ///< 0: none yet
  /// The value of a header, of its last line where it came twice; "" where it did not come.
  std::string_view header(std::string_view name) const;
  /// Takes one line as it came. A status line begins a new head: what a redirect or a "100 Continue" said is gone.
  void take(std::string_view line);

 private:
  struct Header {
    std::string name;  ///< lower case
    std::string value;
  };
  int status_ = 0;
  std::size_t bytes_ = 0;
  std::vector<Header> headers_;
};

/// "bytes 5-9/100", and "bytes */100" where begin == end.
struct ContentRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  ///< one past the last byte
  std::uint64_t size = 0;
};
std::optional<ContentRange> parse_content_range(std::string_view value);

/// A count in decimal digits and nothing else, that fits.
std::optional<std::uint64_t> parse_count(std::string_view text);

/// Of Retry-After: seconds. A date is not gone by, clocks being what they are: nullopt.
std::optional<std::chrono::seconds> parse_retry_after(std::string_view value);

/// A server's words fit for a line of ours: printable, at most 200 bytes.
std::string printable(std::string_view text);

}  // namespace holdfast::world
