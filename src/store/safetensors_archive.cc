#include "store/safetensors_archive.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "store/crc32c.h"
#include "store/shown.h"
#include "store/tensor_file.h"

namespace holdfast::store {
namespace {

class SafetensorsArchive final : public TensorArchive {
 public:
  SafetensorsArchive(std::unique_ptr<world::ReadableFile> file, TensorFile head, const std::string& path)
      : TensorArchive(path, kSafetensorsKind), file_(std::move(file)), head_(std::move(head)) {
    file_bytes_ = file_->size();
    has_checksums_ = head_.checksums.has_value();
    metadata_ = head_.header.metadata;
  }

  Status list() {
    for (const TensorInfo& each : head_.header.tensors) {
      tensors_.push_back({each.name, each.dtype, each.shape, each.end - each.begin, "", ""});
    }
    const auto text = metadata_.find(kAliasesKey);
    if (text == metadata_.end()) return check_tensors();
    const auto aliases = TRY(parse_aliases(text->second), std::string("metadata ") + kAliasesKey);
    metadata_.erase(text);
    for (const auto& [alias, name] : aliases) {
      const auto stored = std::find_if(tensors_.begin(), tensors_.end(),
                                       [&name = name](const ArchivedTensor& each) { return each.name == name; });
      if (stored == tensors_.end()) continue;
      ArchivedTensor tied = *stored;
      tied.tied_to = std::exchange(tied.name, alias);
      tensors_.push_back(std::move(tied));
    }
    return check_tensors();
  }

 private:
  /// Chunk by chunk, so that no byte is handed out before its chunk's checksum matches.
  Status read_elements(std::size_t index, std::span<std::byte> out) override {
    const TensorInfo& tensor = head_.header.tensors.at(index);
    if (!head_.checksums) return file_->read_at(head_.header.data_begin + tensor.begin, out);
    Bytes scratch;
    for (std::uint64_t at = tensor.begin; at < tensor.end;) {
      const std::uint64_t chunk = at / kChecksumChunkBytes;
      const std::uint64_t begin = chunk * kChecksumChunkBytes;
      const std::uint64_t end = std::min(begin + kChecksumChunkBytes, head_.header.data_bytes());
      const std::uint64_t last = std::min(end, tensor.end);
      std::span<std::byte> into = out.subspan(at - tensor.begin, last - at);
      const bool whole = at == begin && last == end;
      if (!whole) {
        scratch.resize(end - begin);
        into = scratch;
      }
      TRY(file_->read_at(head_.header.data_begin + begin, into), "read");
      if (crc32c(into) != head_.checksums->chunks[chunk]) {
        return Error(Code::Corrupt, "chunk " + std::to_string(chunk) +
                                        " does not match its checksum; restore the file "
                                        "from a copy");
      }
      if (!whole) std::memcpy(out.data() + (at - tensor.begin), scratch.data() + (at - begin), last - at);
      at = last;
    }
    return Ok{};
  }

  std::unique_ptr<world::ReadableFile> file_;
  TensorFile head_;
};

}  // namespace

Result<std::unique_ptr<TensorArchive>> open_safetensors_archive(world::FileSource& files,
                                                                std::unique_ptr<world::ReadableFile> file,
                                                                const std::string& path) {
  Result<TensorFile> head = read_tensor_file(files, path);
  if (!head) return std::move(head).error();
  auto archive = std::make_unique<SafetensorsArchive>(std::move(file), *std::move(head), path);
  TRY(archive->list(), path);
  return std::unique_ptr<TensorArchive>(std::move(archive));
}

Result<std::map<std::string, std::string>> parse_aliases(const std::string& text) {
  const nlohmann::json parsed = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const Error bad(Code::BadInput, "is no table of names");
  if (!parsed.is_object()) return bad;
  std::map<std::string, std::string> aliases;
  for (const auto& [alias, name] : parsed.items()) {
    if (!name.is_string()) return bad;
    aliases.emplace(alias, name.get<std::string>());
  }
  return aliases;
}

std::string format_aliases(const std::map<std::string, std::string>& aliases) { return nlohmann::json(aliases).dump(); }

}  // namespace holdfast::store
