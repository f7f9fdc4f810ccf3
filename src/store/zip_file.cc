#include "store/zip_file.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "store/crc32.h"
#include "store/shown.h"

namespace holdfast::store {
namespace {

constexpr std::uint32_t kLocalMagic = 0x04034B50;
constexpr std::uint32_t kCentralMagic = 0x02014B50;
constexpr std::uint32_t kEndMagic = 0x06054B50;
constexpr std::uint32_t kEnd64Magic = 0x06064B50;
constexpr std::uint32_t kLocator64Magic = 0x07064B50;
constexpr std::uint64_t kEndBytes = 22;
constexpr std::uint64_t kEnd64Bytes = 56;
constexpr std::uint64_t kLocator64Bytes = 20;
constexpr std::uint64_t kLocalBytes = 30;
constexpr std::uint64_t kCentralBytes = 46;
constexpr std::uint64_t kCommentBytesMax = 0xFFFF;
constexpr std::uint64_t kDirectoryBytesMax = std::uint64_t{256} << 20U;
constexpr std::uint64_t kBlockBytes = std::uint64_t{1} << 20U;
constexpr std::uint32_t kIn64 = 0xFFFF'FFFF;
constexpr std::uint16_t kEncrypted = 0x0001 | 0x0040 | 0x2000;
constexpr std::uint16_t k64Extra = 1;

Error bad(const std::string& why) { return {Code::BadInput, why}; }

/// Little-endian fields at given places of a record that is known to be large enough.
class Record {
 public:
  explicit Record(BytesView bytes) : bytes_(bytes) {}
  std::uint16_t u16(std::size_t at) const { return field<std::uint16_t>(at); }
  std::uint32_t u32(std::size_t at) const { return field<std::uint32_t>(at); }
  std::uint64_t u64(std::size_t at) const { return field<std::uint64_t>(at); }

 private:
  template <typename Number>
  Number field(std::size_t at) const {
    return ByteReader(bytes_.subspan(at, sizeof(Number))).get<Number>();
  }
  BytesView bytes_;
};

struct Directory {
  std::uint64_t entries = 0;
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
  std::uint64_t limit = 0;  ///< where what follows the directory begins
};

struct CentralEntry {
  std::string name;
  std::uint64_t header = 0;  ///< where its own header lies
  ZipEntry entry;
};

Result<Directory> read_directory64(const FileSlice& slice, std::uint64_t locator_at) {
  Bytes locator(kLocator64Bytes);
  TRY(slice.read_at(locator_at, locator), "read the end");
  const std::uint64_t end_at = Record(locator).u64(8);
  if (Record(locator).u32(16) != 1 || Record(locator).u32(4) != 0) return bad("split into several files");
  if (end_at > locator_at || locator_at - end_at < kEnd64Bytes) return bad("its 64-bit end record lies outside");
  Bytes end(kEnd64Bytes);
  TRY(slice.read_at(end_at, end), "read the end");
  const Record record(end);
  if (record.u32(0) != kEnd64Magic) return bad("no 64-bit end record where there should be one");
  if (record.u32(16) != 0 || record.u32(20) != 0 || record.u64(24) != record.u64(32)) {
    return bad("split into several files");
  }
  return Directory{record.u64(32), record.u64(48), record.u64(40), end_at};
}

Result<Directory> read_directory_place(const FileSlice& slice) {
  if (slice.size < kEndBytes) return bad("too short to be one");
  Bytes tail(std::min(slice.size, kEndBytes + kCommentBytesMax));
  const std::uint64_t tail_at = slice.size - tail.size();
  TRY(slice.read_at(tail_at, tail), "read the end");
  for (std::size_t at = tail.size() - kEndBytes;; --at) {
    const Record record(BytesView(tail).subspan(at));
    if (record.u32(0) == kEndMagic && record.u16(20) == tail.size() - at - kEndBytes) {
      const std::uint64_t end_at = tail_at + at;
      if (at >= kLocator64Bytes && Record(BytesView(tail).subspan(at - kLocator64Bytes)).u32(0) == kLocator64Magic) {
        return read_directory64(slice, end_at - kLocator64Bytes);
      }
      if (record.u16(4) != 0 || record.u16(6) != 0 || record.u16(8) != record.u16(10)) {
        return bad("split into several files");
      }
      return Directory{record.u16(10), record.u32(16), record.u32(12), end_at};
    }
    if (at == 0) return bad("no central directory: cut off, or another kind of file");
  }
}

/// Takes the 64-bit values from the extra field, in the order in which the record lacks them.
bool widen(BytesView extra, std::initializer_list<std::uint64_t*> values) {
  const bool wanted = std::any_of(values.begin(), values.end(), [](const std::uint64_t* v) { return *v == kIn64; });
  if (!wanted) return true;
  while (extra.size() >= 4) {
    const Record head(extra);
    const std::size_t size = head.u16(2);
    if (size > extra.size() - 4) return false;
    if (head.u16(0) == k64Extra) {
      ByteReader reader(extra.subspan(4, size));
      for (std::uint64_t* value : values) {
        if (*value == kIn64) *value = reader.get<std::uint64_t>();
      }
      return reader.ok();
    }
    extra = extra.subspan(4 + size);
  }
  return false;
}

Result<std::vector<CentralEntry>> parse_directory(BytesView bytes, std::uint64_t count) {
  std::vector<CentralEntry> found;
  found.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Record record(bytes);
    if (bytes.size() < kCentralBytes || record.u32(0) != kCentralMagic) {
      return bad("entry " + std::to_string(i) + " of the central directory is damaged");
    }
    const std::size_t name_bytes = record.u16(28);
    const std::size_t extra_bytes = record.u16(30);
    const std::size_t size = kCentralBytes + name_bytes + extra_bytes + record.u16(32);
    if (size > bytes.size()) return bad("entry " + std::to_string(i) + " of the central directory is cut off");
    CentralEntry each;
    each.name = as_text(bytes.subspan(kCentralBytes, name_bytes));
    if ((record.u16(8) & kEncrypted) != 0) return bad("entry " + shown(each.name) + " is encrypted");
    if (record.u16(10) != 0) return bad("entry " + shown(each.name) + " is compressed, as torch never writes it");
    std::uint64_t stored = record.u32(20);
    each.entry.size = record.u32(24);
    each.entry.crc = record.u32(16);
    each.header = record.u32(42);
    const BytesView extra = bytes.subspan(kCentralBytes + name_bytes, extra_bytes);
    if (!widen(extra, {&each.entry.size, &stored, &each.header}) || stored != each.entry.size) {
      return bad("the sizes of entry " + shown(each.name) + " contradict each other");
    }
    found.push_back(std::move(each));
    bytes = bytes.subspan(size);
  }
  if (!bytes.empty()) return bad("the central directory holds more than its entries");
  return found;
}

/// Sets where the entry's data begins: behind its own header, which must call it the same.
Status locate(const FileSlice& slice, std::uint64_t limit, CentralEntry& each) {
  const std::uint64_t header_bytes = kLocalBytes + each.name.size();
  const std::string outside = "entry " + shown(each.name) + " lies outside the file";
  if (each.header > limit || limit - each.header < header_bytes) return bad(outside);
  Bytes header(header_bytes);
  TRY(slice.read_at(each.header, header), "entry " + shown(each.name));
  const Record record(header);
  if (record.u32(0) != kLocalMagic || record.u16(26) != each.name.size() ||
      as_text(BytesView(header).subspan(kLocalBytes)) != each.name || record.u16(8) != 0 ||
      (record.u16(6) & kEncrypted) != 0) {
    return bad("entry " + shown(each.name) + " is not what its own header says");
  }
  each.entry.begin = each.header + header_bytes + record.u16(28);
  if (each.entry.begin > limit || limit - each.entry.begin < each.entry.size) return bad(outside);
  return Ok{};
}

}  // namespace

Status FileSlice::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  if (offset > size || out.size() > size - offset) {
    return Error(Code::Corrupt, "bytes " + std::to_string(offset) + " to " + std::to_string(offset + out.size()) +
                                    " lie outside, there are " + std::to_string(size));
  }
  return file->read_at(begin + offset, out);
}

Result<ZipFile> ZipFile::open(const FileSlice& slice) {
  const Directory directory = TRY(read_directory_place(slice), "zip");
  if (directory.begin > directory.limit || directory.limit - directory.begin < directory.size) {
    return bad("zip: its central directory lies outside");
  }
  if (directory.size > kDirectoryBytesMax || directory.entries > directory.size / kCentralBytes) {
    return bad("zip: its central directory can't hold " + std::to_string(directory.entries) + " entries");
  }
  Bytes bytes(directory.size);
  TRY(slice.read_at(directory.begin, bytes), "read the central directory");
  std::vector<CentralEntry> found = TRY(parse_directory(bytes, directory.entries), "zip");
  std::sort(found.begin(), found.end(),
            [](const CentralEntry& a, const CentralEntry& b) { return a.header < b.header; });
  ZipFile zip(slice);
  std::uint64_t free_from = 0;
  for (CentralEntry& each : found) {
    TRY(locate(slice, directory.begin, each), "zip");
    if (each.header < free_from) return bad("zip: entry " + shown(each.name) + " overlaps the one before it");
    free_from = each.entry.begin + each.entry.size;
    if (!zip.entries_.emplace(each.name, each.entry).second) return bad("zip: two entries " + shown(each.name));
  }
  return zip;
}

const ZipEntry* ZipFile::find(const std::string& name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

Result<Bytes> ZipFile::read(const std::string& name, std::uint64_t bytes_max) const {
  const ZipEntry* entry = find(name);
  if (entry == nullptr) return bad("no entry " + shown(name));
  if (entry->size > bytes_max) {
    return bad("entry " + shown(name) + " has " + std::to_string(entry->size) + " bytes, at most " +
               std::to_string(bytes_max) + " are read");
  }
  Bytes bytes(entry->size);
  TRY(read_checked(*entry, 0, bytes), "entry " + shown(name));
  return bytes;
}

Status ZipFile::read_checked(const ZipEntry& entry, std::uint64_t begin, std::span<std::byte> out) const {
  const std::uint64_t end = begin + out.size();
  Bytes scratch;
  std::uint32_t crc = 0;
  for (std::uint64_t at = 0; at < entry.size;) {
    std::uint64_t block = std::min(kBlockBytes, entry.size - at);
    std::span<std::byte> into;
    if (at >= begin && at < end) {
      block = std::min(block, end - at);
      into = out.subspan(at - begin, block);
    } else {
      if (at < begin) block = std::min(block, begin - at);
      scratch.resize(std::max<std::size_t>(scratch.size(), block));
      into = std::span(scratch).first(block);
    }
    TRY(slice_.read_at(entry.begin + at, into), "read");
    crc = crc32(into, crc);
    at += block;
  }
  if (crc == entry.crc) return Ok{};
  return Error(Code::Corrupt, "bytes " + std::to_string(slice_.begin + entry.begin) + " to " +
                                  std::to_string(slice_.begin + entry.begin + entry.size) +
                                  " do not match their checksum; restore the file from a copy");
}

}  // namespace holdfast::store
