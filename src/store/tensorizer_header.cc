#include "store/tensorizer_header.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "store/dtype.h"
#include "store/shown.h"

namespace holdfast::store {
namespace {

constexpr std::size_t kFlagBytes = 32;
constexpr std::uint32_t kEncryptedVersion = 3;
constexpr std::uint32_t kFlagsVersion = 4;
constexpr std::uint32_t kVersionMax = 5;
constexpr std::uint8_t kEncryptedFlag = 1;
constexpr std::uint8_t kVersionedFlag = 2;
constexpr std::uint64_t kEntryBytesMin = 29;
constexpr std::uint8_t kKindMax = 2;
constexpr std::uint8_t kStateDict = 2;
constexpr char kPathSign = '\x1E';
constexpr std::uint64_t kChunkQuantum = 64;
constexpr std::uint64_t kChunkBytesMin = 1024;

Error bad(const std::string& why) { return {Code::BadInput, why}; }

/// Reads on from the front; after the first read beyond the end `ok()` is false and all others give nothing.
class Cursor {
 public:
  explicit Cursor(BytesView bytes) : all_(bytes) {}
  bool ok() const { return ok_; }
  bool done() const { return ok_ && at_ == all_.size(); }
  std::size_t at() const { return at_; }
  BytesView take(std::uint64_t size) {
    if (!ok_ || size > all_.size() - at_) {
      ok_ = false;
      return {};
    }
    const BytesView taken = all_.subspan(at_, size);
    at_ += taken.size();
    return taken;
  }
  template <typename Number>
  Number get() {
    return ByteReader(take(sizeof(Number))).get<Number>();
  }
  template <typename Size>
  std::string text() {
    const auto size = get<Size>();
    return std::string(as_text(take(size)));
  }
  template <std::size_t N>
  std::array<std::byte, N> array() {
    std::array<std::byte, N> out{};
    const BytesView taken = take(N);
    std::copy(taken.begin(), taken.end(), out.begin());
    return out;
  }
  std::vector<std::uint64_t> shape(bool wide) {
    const auto dimensions = get<std::uint8_t>();
    std::vector<std::uint64_t> out;
    for (unsigned i = 0; i < dimensions && ok_; ++i) {
      out.push_back(wide ? get<std::uint64_t>() : get<std::uint32_t>());
    }
    return out;
  }

 private:
  BytesView all_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

Result<std::vector<TensorizerHash>> parse_hashes(BytesView block) {
  Cursor cursor(block);
  std::vector<TensorizerHash> hashes;
  for (auto left = cursor.get<std::uint8_t>(); left > 0 && cursor.ok(); --left) {
    TensorizerHash hash;
    hash.type = cursor.get<std::uint8_t>();
    const BytesView value = cursor.take(cursor.get<std::uint8_t>());
    hash.value.assign(value.begin(), value.end());
    hashes.push_back(std::move(hash));
  }
  if (!cursor.done()) return bad("its hashes are cut off or followed by more");
  for (const TensorizerHash& hash : hashes) {
    const std::size_t wanted = hash.type == 0 ? 4 : 32;
    if (hash.type > 1 || hash.value.size() != wanted) return bad("a hash of an unknown type");
  }
  if (hashes.empty()) return bad("no hash to check its data by");
  return hashes;
}

/// Sets every hash's value to zeros in `block`, which parse_hashes has accepted.
void blank_hashes(std::span<std::byte> block) {
  for (std::size_t at = 1; at + 1 < block.size();) {
    const auto size = static_cast<std::size_t>(block[at + 1]);
    std::fill_n(block.begin() + static_cast<std::ptrdiff_t>(at) + 2, size, std::byte{0});
    at += 2 + size;
  }
}

TensorizerDerivation parse_derivation(Cursor& cursor) {
  TensorizerDerivation derivation;
  derivation.operations = cursor.get<std::uint64_t>();
  derivation.memory_bytes = cursor.get<std::uint64_t>();
  derivation.algorithm = cursor.get<std::int32_t>();
  const BytesView salt = cursor.take(cursor.get<std::uint16_t>());
  derivation.salt.assign(salt.begin(), salt.end());
  return derivation;
}

Status parse_cipher(Cursor& cursor, bool parallel, TensorizerCrypt& crypt) {
  if (!crypt.macs.empty()) return bad("encrypted in two ways");
  if (parallel) {
    crypt.chunk_bytes = cursor.get<std::uint64_t>();
    if (crypt.chunk_bytes < kChunkBytesMin || crypt.chunk_bytes % kChunkQuantum != 0) {
      return bad("encrypted in chunks of " + std::to_string(crypt.chunk_bytes) + " bytes, which can't be");
    }
  }
  crypt.nonce = cursor.array<24>();
  const std::uint64_t macs = parallel ? cursor.get<std::uint64_t>() : 1;
  for (std::uint64_t i = 0; i < macs && cursor.ok(); ++i) crypt.macs.push_back(cursor.array<16>());
  return Ok{};
}

Result<TensorizerCrypt> parse_crypt(BytesView block, std::uint64_t data_bytes) {
  Cursor cursor(block);
  TensorizerCrypt crypt;
  for (auto left = cursor.get<std::uint16_t>(); left > 0 && cursor.ok(); --left) {
    Cursor chunk(cursor.take(cursor.get<std::uint64_t>()));
    const auto type = chunk.get<std::uint16_t>();
    if (type == 1) {
      if (crypt.derivation || chunk.get<std::uint16_t>() != 1) return bad("its key is derived in an unknown way");
      crypt.derivation = parse_derivation(chunk);
    } else if (type == 2 || type == 3) {
      TRY(parse_cipher(chunk, type == 2, crypt), "encryption");
    } else {
      return bad("encrypted in an unknown way");
    }
    if (!chunk.done()) return bad("what it says of its encryption is cut off or followed by more");
  }
  if (!cursor.done()) return bad("what it says of its encryption is cut off or followed by more");
  const std::uint64_t chunks =
      crypt.chunk_bytes == 0 ? 1 : data_bytes / crypt.chunk_bytes + (data_bytes % crypt.chunk_bytes == 0 ? 0 : 1);
  if (crypt.macs.size() != chunks && data_bytes > 0) return bad("encrypted in another number of chunks than it has");
  return crypt;
}

/// Follows a list of texts and integers, and refuses everything else.
class PathSax : public nlohmann::json_sax<nlohmann::json> {
 public:
  const std::string& path() const { return path_; }
  bool start_array(std::size_t) override { return !std::exchange(inside_, true); }
  bool end_array() override { return true; }
  bool string(string_t& text) override { return add(text); }
  bool number_unsigned(number_unsigned_t number) override { return add(std::to_string(number)); }
  bool number_integer(number_integer_t) override { return false; }
  bool number_float(number_float_t, const string_t&) override { return false; }
  bool null() override { return false; }
  bool boolean(bool) override { return false; }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return false; }
  bool key(string_t&) override { return false; }
  bool end_object() override { return false; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

 private:
  bool add(const std::string& part) {
    if (!inside_) return false;
    path_ += (std::exchange(some_, true) ? "." : "") + part;
    return true;
  }
  std::string path_;
  bool inside_ = false;
  bool some_ = false;
};

}  // namespace

Result<TensorizerHead> parse_tensorizer_head(BytesView bytes, std::uint64_t file_bytes) {
  Cursor cursor(bytes);
  if (as_text(cursor.take(kTensorizerSign.size())) != kTensorizerSign) return bad("not a tensorizer file");
  TensorizerHead head;
  head.version = cursor.get<std::uint32_t>();
  const BytesView flags = cursor.take(kFlagBytes);
  (void)cursor.take(16);  // the size of all tensors, which its writer leaves at zero, and padding
  head.tensors = cursor.get<std::uint64_t>();
  head.index_bytes = cursor.get<std::uint64_t>();
  if (!cursor.ok()) return bad("cut off in its header");
  if (head.version < 1 || head.version > kVersionMax) {
    return bad("tensorizer version " + std::to_string(head.version) + "; versions 1 to 5 are read");
  }
  const auto set = static_cast<std::uint8_t>(flags[0]);
  const bool more = std::any_of(flags.begin() + 1, flags.end(), [](std::byte flag) { return flag != std::byte{0}; });
  const std::uint8_t known = head.version < kFlagsVersion ? 0 : head.version < kVersionMax ? 1 : 3;
  if (more || (set & ~known) != 0) return bad("flags that its version does not have");
  head.encrypted = head.version == kEncryptedVersion || (set & kEncryptedFlag) != 0;
  head.versioned = (set & kVersionedFlag) != 0;
  if (head.index_bytes > file_bytes - kTensorizerHeaderBytes) {
    return bad("its index claims " + std::to_string(head.index_bytes) + " bytes, the file has " +
               std::to_string(file_bytes) + " in all");
  }
  if (head.tensors > head.index_bytes / kEntryBytesMin) {
    return bad("claims " + std::to_string(head.tensors) + " tensors, more than its index of " +
               std::to_string(head.index_bytes) + " bytes can hold");
  }
  return head;
}

Result<std::vector<TensorizerEntry>> parse_tensorizer_index(BytesView bytes, const TensorizerHead& head) {
  Cursor cursor(bytes);
  std::vector<TensorizerEntry> entries;
  for (std::uint64_t i = 0; i < head.tensors; ++i) {
    const std::string which = "entry " + std::to_string(i) + " of its index ";
    TensorizerEntry entry;
    if (head.versioned) {
      const auto version = cursor.get<std::uint32_t>();
      if (version != 1 && version != kVersionMax)
        return bad(which + "has the unknown version " + std::to_string(version));
      entry.wide = version == kVersionMax;
    }
    entry.name = cursor.text<std::uint16_t>();
    entry.kind = cursor.get<std::uint8_t>();
    entry.dtype = cursor.text<std::uint8_t>();
    entry.shape = cursor.shape(entry.wide);
    entry.header_begin = cursor.get<std::uint64_t>();
    entry.data_begin = cursor.get<std::uint64_t>();
    entry.data_bytes = cursor.get<std::uint64_t>();
    if (!cursor.ok()) return bad(which + "is cut off");
    if (entry.kind > kKindMax) return bad(which + "is of an unknown kind");
    entries.push_back(std::move(entry));
  }
  const BytesView rest = bytes.subspan(cursor.at());
  if (std::any_of(rest.begin(), rest.end(), [](std::byte each) { return each != std::byte{0}; })) {
    return bad("its index holds more than its " + std::to_string(head.tensors) + " tensors");
  }
  return entries;
}

Result<TensorizerRecord> parse_tensorizer_record(BytesView bytes, const TensorizerEntry& entry, bool encrypted) {
  Cursor cursor(bytes);
  if (cursor.get<std::uint64_t>() != bytes.size()) {
    return bad("its header has another size than the " + std::to_string(bytes.size()) + " bytes up to its data");
  }
  (void)cursor.get<std::uint16_t>();  // which module of its writer
  const auto kind = cursor.get<std::uint8_t>();
  const std::string name = cursor.text<std::uint16_t>();
  const std::string dtype = cursor.text<std::uint8_t>();
  const std::vector<std::uint64_t> shape = cursor.shape(entry.wide);
  const BytesView hashes = cursor.take(cursor.get<std::uint16_t>());
  const std::size_t hashes_end = cursor.at();
  const BytesView crypt = encrypted ? cursor.take(cursor.get<std::uint64_t>()) : BytesView();
  const std::size_t crypt_end = cursor.at();
  const auto data_bytes = cursor.get<std::uint64_t>();
  if (!cursor.done()) return bad("its header is cut off or followed by more");
  if (kind != entry.kind || name != entry.name || dtype != entry.dtype || shape != entry.shape ||
      data_bytes != entry.data_bytes) {
    return bad("its header and the index disagree about it: " + shown(name) + " " + shape_text(shape) + ", " +
               std::to_string(data_bytes) + " bytes");
  }
  TensorizerRecord record;
  record.hashes = TRY(parse_hashes(hashes), "header");
  if (encrypted) record.crypt = TRY(parse_crypt(crypt, entry.data_bytes), "header");
  record.hashed.assign(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(hashes_end));
  blank_hashes(std::span(record.hashed).subspan(hashes_end - hashes.size()));
  record.hashed.insert(record.hashed.end(), bytes.begin() + static_cast<std::ptrdiff_t>(crypt_end), bytes.end());
  return record;
}

Result<std::string> tensorizer_name(const TensorizerEntry& entry) {
  if (entry.name.empty() || entry.name.front() != kPathSign) return entry.name;
  PathSax sax;
  const bool list = nlohmann::json::sax_parse(entry.name.begin() + 1, entry.name.end(), &sax);
  if (list && entry.kind == kStateDict) return sax.path();
  return bad("the name " + shown(entry.name) + " is no list of texts and counts");
}

}  // namespace holdfast::store
