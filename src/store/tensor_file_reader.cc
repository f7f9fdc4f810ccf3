// Reading a tensor file: no byte of it is handed out before its chunk's checksum matches.
#include <algorithm>
#include <cstring>

#include "base/crc32c.h"
#include "store/tensor_file.h"

namespace holdfast::store {
namespace {

constexpr std::uint64_t kPlaceAlignment = 64;

Error damaged(const std::string& what) { return {Code::Corrupt, what + "; restore the file from a copy"}; }

/// Gives an error of the format its mend.
template <typename T>
Result<T> mended(Result<T> parsed) {
  if (parsed) return parsed;
  return Error(parsed.error().code(), parsed.error().message() + "; fetch or write the file again");
}

Result<Bytes> read_prefix(world::ReadableFile& file) {
  Bytes prefix(std::min<std::uint64_t>(file.size(), sizeof(std::uint64_t)));
  TRY(file.read_at(0, prefix), "read the header's length");
  prefix.resize(TRY(mended(safetensors_prefix_bytes(prefix, file.size())), "header"));
  TRY(file.read_at(0, prefix), "read the header");
  return prefix;
}

Result<TensorFile> parse_head(BytesView prefix, std::uint64_t file_size) {
  TensorFile head;
  head.header_crc = crc32c(prefix);
  head.header = TRY(mended(parse_safetensors_header(prefix, file_size)), "header");
  const auto text = head.header.metadata.find(kChecksumsKey);
  if (text == head.header.metadata.end()) return head;
  const std::string doing = std::string("metadata ") + kChecksumsKey;
  Checksums checksums = TRY(mended(parse_checksums(text->second, head.header.data_bytes())), doing);
  if (TRY(mended(header_checksum(prefix, text->second)), doing) != checksums.header) {
    return damaged("the header (bytes 0 to " + std::to_string(prefix.size()) + ") does not match its checksum");
  }
  head.header.metadata.erase(text);
  head.checksums = std::move(checksums);
  return head;
}

Result<TensorFile> read_head(world::ReadableFile& file) {
  const Result<Bytes> prefix = read_prefix(file);
  if (!prefix) return prefix.error();
  Result<TensorFile> head = parse_head(*prefix, file.size());
  if (head) head->checked = file.checked();
  return head;
}

/// Bytes of the data buffer, from `begin` up to `end`, that belong at `out`.
struct Span {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::byte* out = nullptr;  ///< nowhere: to be checked only
};

constexpr std::uint64_t kScratchBytesMax = std::uint64_t{32} << 20U;

class DataReader {
 public:
  DataReader(world::ReadableFile& file, const TensorFile& head) : file_(file), head_(head) {}

  /// Each chunk once, straight to where it belongs where all of it does; the rest through a bounded scratch memory.
  /// `spans` by place. The error is that of a piece in the file that has one.
  Status read(const std::vector<Span>& spans, unsigned threads) {
    std::vector<Piece> pieces = cut(spans);
    for (std::size_t begin = 0; begin < pieces.size();) {
      std::uint64_t scratch = 0;
      std::size_t end = begin;
      for (; end < pieces.size() && scratch <= kScratchBytesMax; ++end) {
        if (!direct(pieces[end])) scratch += pieces[end].size();
      }
      TRY(read_pieces(std::span(pieces).subspan(begin, end - begin), scratch, threads), "read");
      begin = end;
    }
    return Ok{};
  }

 private:
  /// A chunk of the data buffer, or without checksums any bytes of it, and which of them are wanted where.
  struct Piece {
    std::uint64_t chunk = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::vector<Span> parts;
    std::uint64_t size() const { return end - begin; }
  };

  std::vector<Piece> cut(const std::vector<Span>& spans) const {
    std::vector<Piece> pieces;
    for (const Span& span : spans) {
      for (std::uint64_t begin = span.begin; begin < span.end;) {
        const std::uint64_t chunk = begin / kChecksumChunkBytes;
        const std::uint64_t end = std::min(span.end, (chunk + 1) * kChecksumChunkBytes);
        if (!head_.checksums || pieces.empty() || pieces.back().chunk != chunk)
          pieces.push_back(piece(chunk, begin, end));
        pieces.back().parts.push_back({begin, end, span.out == nullptr ? nullptr : span.out + (begin - span.begin)});
        begin = end;
      }
    }
    return pieces;
  }

  Piece piece(std::uint64_t chunk, std::uint64_t begin, std::uint64_t end) const {
    if (!head_.checksums) return {chunk, begin, end, {}};
    const std::uint64_t first = chunk * kChecksumChunkBytes;
    return {chunk, first, std::min(first + kChecksumChunkBytes, head_.header.data_bytes()), {}};
  }

  static bool direct(const Piece& piece) {
    const Span& part = piece.parts.front();
    return part.out != nullptr && part.begin == piece.begin && part.end == piece.end;
  }

  Status read_pieces(std::span<const Piece> pieces, std::uint64_t scratch_bytes, unsigned threads) {
    AlignedBytes scratch(scratch_bytes);
    std::vector<world::BlockRead> blocks;
    std::uint64_t used = 0;
    for (const Piece& each : pieces) {
      std::byte* into = each.parts.front().out;
      if (!direct(each)) {
        into = scratch.all().data() + used;
        used += each.size();
      }
      blocks.push_back({head_.header.data_begin + each.begin, {into, each.size()}});
    }
    const bool to_check = head_.checksums && !file_.checked();
    return file_.read_blocks(blocks, threads, [&](std::size_t i) {
      const Piece& each = pieces[i];
      if (Status good = to_check ? check(each.chunk, each.begin, blocks[i].into) : Status(Ok{}); !good) return good;
      for (const Span& part : each.parts) {
        if (part.out == nullptr || direct(each)) continue;
        std::memcpy(part.out, blocks[i].into.data() + (part.begin - each.begin), part.end - part.begin);
      }
      return Status(Ok{});
    });
  }

  Status check(std::uint64_t chunk, std::uint64_t begin, BytesView bytes) const {
    if (crc32c(bytes) == head_.checksums->chunks[chunk]) return Ok{};
    const std::uint64_t at = head_.header.data_begin + begin;
    return damaged(tensors_at(begin, begin + bytes.size()) + ": chunk " + std::to_string(chunk) + " (bytes " +
                   std::to_string(at) + " to " + std::to_string(at + bytes.size()) + ") does not match its checksum");
  }

  /// "tensor a" or "tensors a to c".
  std::string tensors_at(std::uint64_t begin, std::uint64_t end) const {
    const TensorInfo* first = nullptr;
    const TensorInfo* last = nullptr;
    for (const TensorInfo& tensor : head_.header.tensors) {
      if (tensor.begin == tensor.end || tensor.end <= begin || tensor.begin >= end) continue;
      if (first == nullptr) first = &tensor;
      last = &tensor;
    }
    if (first == last) return first == nullptr ? "no tensor" : "tensor " + first->name;
    return "tensors " + first->name + " to " + last->name;
  }

  world::ReadableFile& file_;
  const TensorFile& head_;
};

/// The tensors of those names, in the order of the file. Errors: BadInput.
Result<std::vector<TensorInfo>> chosen(const SafetensorsHeader& header, const std::vector<std::string>& names) {
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::vector<TensorInfo> found;
  for (const TensorInfo& tensor : header.tensors) {
    if (std::binary_search(sorted.begin(), sorted.end(), tensor.name)) found.push_back(tensor);
  }
  if (found.size() == sorted.size()) return found;
  const auto held = [&](const std::string& name) {
    return std::any_of(found.begin(), found.end(), [&](const TensorInfo& tensor) { return tensor.name == name; });
  };
  return Error(Code::BadInput, "holds no tensor " + *std::find_if_not(sorted.begin(), sorted.end(), held));
}

/// Gives the chosen tensors places of their own, one behind the other. The bytes they take.
std::uint64_t place(std::vector<TensorInfo>& tensors) {
  std::uint64_t next = 0;
  for (TensorInfo& tensor : tensors) {
    const std::uint64_t size = tensor.end - tensor.begin;
    tensor.begin = next;
    tensor.end = next + size;
    next = (tensor.end + kPlaceAlignment - 1) / kPlaceAlignment * kPlaceAlignment;
  }
  return next;
}

Result<LoadedTensors> load_all(world::ReadableFile& file, TensorFile head, unsigned threads) {
  AlignedBytes block(head.header.data_bytes());
  TRY(DataReader(file, head).read({{0, head.header.data_bytes(), block.all().data()}}, threads), "data");
  std::vector<TensorInfo> tensors = head.header.tensors;
  return LoadedTensors{std::move(head), std::move(tensors), std::move(block)};
}

Result<LoadedTensors> load_some(world::ReadableFile& file, TensorFile head, const std::vector<std::string>& names,
                                unsigned threads) {
  const std::vector<TensorInfo> stored = TRY(chosen(head.header, names), "load");
  std::vector<TensorInfo> tensors = stored;
  AlignedBytes block(place(tensors));
  std::vector<Span> spans;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    spans.push_back({stored[i].begin, stored[i].end, block.all().data() + tensors[i].begin});
  }
  TRY(DataReader(file, head).read(spans, threads), "data");
  return LoadedTensors{std::move(head), std::move(tensors), std::move(block)};
}

}  // namespace

Result<TensorFile> read_tensor_file(world::FileSource& files, const std::string& path) {
  const std::unique_ptr<world::ReadableFile> file = TRY(files.open(path), "open");
  return TRY(read_head(*file), path);
}

Result<TensorFile> verify_tensor_file(world::FileSource& files, const std::string& path, unsigned threads) {
  auto file = OpenTensorFile::open(files, path);
  if (!file) return std::move(file).error();
  if (Status good = file->verify(threads); !good) return std::move(good).error();
  return file->about();
}

Result<LoadedTensors> load_tensor_file(world::FileSource& files, const std::string& path,
                                       const std::optional<std::vector<std::string>>& names, unsigned threads) {
  const std::unique_ptr<world::ReadableFile> file = TRY(files.open(path), "open");
  TensorFile head = TRY(read_head(*file), path);
  if (names) return TRY(load_some(*file, std::move(head), *names, threads), path);
  return TRY(load_all(*file, std::move(head), threads), path);
}

Result<OpenTensorFile> OpenTensorFile::open(world::FileSource& files, const std::string& path) {
  std::unique_ptr<world::ReadableFile> file = TRY(files.open(path), "open");
  TensorFile head = TRY(read_head(*file), path);
  return OpenTensorFile(path, std::move(file), std::move(head));
}

Status OpenTensorFile::read(std::vector<DataRange> ranges, unsigned threads) const {
  std::sort(ranges.begin(), ranges.end(), [](const DataRange& a, const DataRange& b) { return a.begin < b.begin; });
  std::vector<Span> spans;
  spans.reserve(ranges.size());
  for (const DataRange& each : ranges) spans.push_back({each.begin, each.begin + each.out.size(), each.out.data()});
  TRY(DataReader(*file_, about_).read(spans, threads), path_ + ": data");
  return Ok{};
}

Status OpenTensorFile::verify(unsigned threads) const {
  TRY(DataReader(*file_, about_).read({{0, about_.header.data_bytes(), nullptr}}, threads), path_ + ": data");
  return Ok{};
}

Result<Bytes> OpenTensorFile::prefix() const {
  Bytes prefix = TRY(read_prefix(*file_), path_);
  const TensorFile now = TRY(parse_head(prefix, file_->size()), path_);
  if (now.header != about_.header || now.checksums != about_.checksums) {
    return Error(Code::Corrupt, path_ + ": its header changed while it was read; try again when nobody writes to it");
  }
  return prefix;
}

}  // namespace holdfast::store
