#include "store/checksums.h"

#include <charconv>

#include "base/check.h"
#include "base/crc32c.h"

namespace holdfast::store {
namespace {

constexpr std::string_view kHead = "crc32c:1048576:";  // algorithm, bytes of a chunk
constexpr std::size_t kDigits = 8;
static_assert(kChecksumChunkBytes == 1048576);

void append_hex(std::string& text, std::uint32_t value) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (int shift = 28; shift >= 0; shift -= 4) text += digits[(value >> static_cast<unsigned>(shift)) & 15U];
}

bool read_hex(std::string_view digits, std::uint32_t& value) {
  for (const char digit : digits) {
    if (digit >= 'A' && digit <= 'F') return false;  // one spelling
  }
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return error == std::errc{} && end == digits.data() + digits.size();
}

}  // namespace

std::uint64_t chunk_count(std::uint64_t data_bytes) {
  return data_bytes / kChecksumChunkBytes + (data_bytes % kChecksumChunkBytes == 0 ? 0 : 1);
}

std::string format_checksums(const Checksums& checksums) {
  std::string text(kHead);
  text.reserve(kHead.size() + kDigits * (checksums.chunks.size() + 1));
  append_hex(text, checksums.header);
  for (const std::uint32_t chunk : checksums.chunks) append_hex(text, chunk);
  return text;
}

Result<Checksums> parse_checksums(std::string_view text, std::uint64_t data_bytes) {
  if (!text.starts_with(kHead)) {
    return Error(Code::BadInput, "they are not of a kind that this version knows (" + std::string(kHead) + "...)");
  }
  const std::string_view digits = text.substr(kHead.size());
  const std::uint64_t chunks = chunk_count(data_bytes);
  if (digits.size() % kDigits != 0 || digits.size() / kDigits != chunks + 1) {
    return Error(Code::BadInput, "they have " + std::to_string(digits.size()) + " digits, " +
                                     std::to_string(data_bytes) + " bytes of data need " +
                                     std::to_string(kDigits * (chunks + 1)));
  }
  Checksums checksums;
  checksums.chunks.resize(chunks);
  bool good = read_hex(digits.substr(0, kDigits), checksums.header);
  for (std::size_t i = 0; i < chunks; ++i) {
    good = good && read_hex(digits.substr(kDigits * (i + 1), kDigits), checksums.chunks[i]);
  }
  if (!good) return Error(Code::BadInput, "they hold something else than hexadecimal digits");
  return checksums;
}

Result<std::uint32_t> header_checksum(BytesView prefix, std::string_view text) {
  const std::size_t at = as_text(prefix).find(text);
  if (text.size() < kHead.size() || at == std::string_view::npos) {
    return Error(Code::BadInput, "they are not spelt plainly in the header");
  }
  const std::size_t begin = at + kHead.size();
  const std::size_t end = at + text.size();
  const std::string zeros(end - begin, '0');
  return crc32c(prefix.subspan(end), crc32c(as_bytes(zeros), crc32c(prefix.first(begin))));
}

}  // namespace holdfast::store
