// Reading a tensor file: no byte of it is handed out before its chunk's checksum matches.
#include <algorithm>

#include "base/crc32c.h"
#include "store/data_reader.h"
#include "store/placed_tensors.h"
#include "store/tensor_file.h"

namespace holdfast::store {
namespace {

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

Result<LoadedTensors> load_all(world::ReadableFile& file, TensorFile head, const ReadPolicy& policy) {
  AlignedBytes block(head.header.data_bytes());
  TRY(DataReader(file, head, policy).read({{0, head.header.data_bytes(), block.all().data()}}), "data");
  std::vector<TensorInfo> tensors = head.header.tensors;
  return LoadedTensors{std::move(head), std::move(tensors), std::move(block)};
}

Result<LoadedTensors> load_some(world::ReadableFile& file, TensorFile head, const std::vector<std::string>& names,
                                const ReadPolicy& policy) {
  const std::vector<TensorInfo> stored = TRY(tensors_named(head.header, names), "load");
  std::vector<TensorInfo> tensors = stored;
  AlignedBytes block(place_tensors(tensors, head.header.data_begin));
  std::vector<Span> spans;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    spans.push_back({stored[i].begin, stored[i].end, block.all().data() + tensors[i].begin});
  }
  TRY(DataReader(file, head, policy).read(spans), "data");
  return LoadedTensors{std::move(head), std::move(tensors), std::move(block)};
}

}  // namespace

Result<TensorFile> read_tensor_head(world::ReadableFile& file) {
  const Result<Bytes> prefix = read_prefix(file);
  if (!prefix) return prefix.error();
  Result<TensorFile> head = parse_head(*prefix, file.size());
  if (head) head->checked = file.checked();
  return head;
}

Result<TensorFile> read_tensor_file(world::FileSource& files, const std::string& path) {
  const std::unique_ptr<world::ReadableFile> file = TRY(files.open(path), "open");
  return TRY(read_tensor_head(*file), path);
}

Result<TensorFile> verify_tensor_file(world::FileSource& files, const std::string& path, unsigned threads) {
  auto file = OpenTensorFile::open(files, path);
  if (!file) return std::move(file).error();
  if (Status good = file->verify(threads); !good) return std::move(good).error();
  return file->about();
}

Result<LoadedTensors> load_tensor_file(world::FileSource& files, const std::string& path,
                                       const std::optional<std::vector<std::string>>& names, unsigned threads) {
  return load_tensor_file(files, path, names, ReadPolicy{.threads = threads});
}

Result<LoadedTensors> load_tensor_file(world::FileSource& files, const std::string& path,
                                       const std::optional<std::vector<std::string>>& names, const ReadPolicy& policy) {
  const std::unique_ptr<world::ReadableFile> file = TRY(files.open(path), "open");
  TensorFile head = TRY(read_tensor_head(*file), path);
  if (names) return TRY(load_some(*file, std::move(head), *names, policy), path);
  return TRY(load_all(*file, std::move(head), policy), path);
}

Result<OpenTensorFile> OpenTensorFile::open(world::FileSource& files, const std::string& path) {
  std::unique_ptr<world::ReadableFile> file = TRY(files.open(path), "open");
  TensorFile head = TRY(read_tensor_head(*file), path);
  return OpenTensorFile(path, std::move(file), std::move(head));
}

Status OpenTensorFile::read(std::vector<DataRange> ranges, unsigned threads) const {
  std::sort(ranges.begin(), ranges.end(), [](const DataRange& a, const DataRange& b) { return a.begin < b.begin; });
  std::vector<Span> spans;
  spans.reserve(ranges.size());
  for (const DataRange& each : ranges) spans.push_back({each.begin, each.begin + each.out.size(), each.out.data()});
  TRY(DataReader(*file_, about_, {.threads = threads}).read(spans), path_ + ": data");
  return Ok{};
}

Status OpenTensorFile::verify(unsigned threads) const {
  TRY(DataReader(*file_, about_, {.threads = threads}).read({{0, about_.header.data_bytes(), nullptr}}),
      path_ + ": data");
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
