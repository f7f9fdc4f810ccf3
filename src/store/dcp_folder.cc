// Reading a folder: each tensor from its chunks.
#include "store/dcp_folder.h"

#include <algorithm>
#include <map>

#include "store/dcp_metadata.h"
#include "store/dtype.h"
#include "store/shown.h"
#include "store/torch_file.h"

namespace holdfast::store {
namespace {

constexpr std::uint64_t kMetadataBytesMax = std::uint64_t{512} << 20U;

Error bad(const std::string& why) { return {Code::BadInput, why}; }

class DcpFolder final : public TensorArchive {
 public:
  DcpFolder(world::FileSource& files, const std::string& path) : TensorArchive(path, kDcpKind), files_(files) {}

  Status list(DcpMetadata metadata) {
    others_ = std::move(metadata.others);
    stored_ = std::move(metadata.tensors);
    std::map<std::string, std::string> first_of;  // by the items it is kept in
    for (const DcpTensor& each : stored_) {
      ArchivedTensor tensor{each.name, std::string(each.dtype->name), each.shape, each.dtype->bytes, "", ""};
      for (const std::uint64_t dimension : each.shape) tensor.bytes *= dimension;
      if (!tensor.shape.empty()) tensor.shape.back() *= each.dtype->packed;
      std::string kept = tensor.dtype + shape_text(each.shape);
      for (const DcpItem& item : each.items) {
        if (item.transformed) tensor.unreadable = "its writer's extensions have changed what is stored";
        if (Status inside = check_item(item); !inside)
          return std::move(inside).error().in("tensor " + shown(each.name));
        kept += ' ' + std::to_string(item.begin) + ' ' + item.file + '\0';
      }
      const std::string& first = first_of.emplace(std::move(kept), each.name).first->second;
      if (first != each.name && tensor.bytes > 0) tensor.tied_to = first;
      tensors_.push_back(std::move(tensor));
    }
    return check_tensors();
  }

 private:
  Status check_item(const DcpItem& item) {
    auto known = sizes_.find(item.file);
    if (known == sizes_.end()) {
      const auto file = TRY(files_.open(path() + "/" + item.file), "open");
      known = sizes_.emplace(item.file, file->size()).first;
      file_bytes_ += file->size();
    }
    if (item.begin <= known->second && item.size <= known->second - item.begin) return Ok{};
    return bad("its chunk (" + std::to_string(item.size) + " bytes from " + std::to_string(item.begin) +
               " on) lies outside " + shown(item.file) + ", which has " + std::to_string(known->second) +
               ": is it cut off?");
  }

  Status read_elements(std::size_t index, std::span<std::byte> out) override {
    const DcpTensor& tensor = stored_.at(index);
    for (std::size_t i = 0; i < tensor.items.size(); ++i) {
      const DcpItem& item = tensor.items[i];
      TRY(read_chunk(tensor, tensor.boxes[i], item, out),
          "chunk " + std::to_string(i) + ", byte " + std::to_string(item.begin) + " of " + shown(item.file));
    }
    return Ok{};
  }

  Status read_chunk(const DcpTensor& tensor, const Box& box, const DcpItem& item, std::span<std::byte> out) const {
    const auto file = TRY(files_.open(path() + "/" + item.file), "open");
    const FileSlice slice{file.get(), item.begin, item.size};
    if (item.begin > file->size() || item.size > file->size() - item.begin) return bad("the file was cut off");
    const TorchZip zip = TRY(TorchZip::open(slice), "read");
    const std::optional<TorchTensor> chunk = TRY(torch_tensor(zip.pickle(), zip.pickle().root()), "read");
    if (!chunk) return bad("holds no tensor");
    if (chunk->meta || chunk->dtype != tensor.dtype || chunk->shape != box.shape) {
      return bad("holds a tensor of " + shape_text(chunk->shape) + " and " + std::string(chunk->dtype->name) +
                 ", not of " + shape_text(box.shape) + " and " + std::string(tensor.dtype->name));
    }
    const std::size_t element = tensor.dtype->bytes;
    if (is_run(tensor.shape, box)) {
      return zip.read(*chunk, out.subspan(first_element(tensor.shape, box) * element, chunk->bytes()), false);
    }
    AlignedBytes elements(chunk->bytes());
    if (Status done = zip.read(*chunk, elements.all(), false); !done) return done;
    place_box(tensor.shape, box, element, elements.all(), out);
    return Ok{};
  }

  world::FileSource& files_;
  std::vector<DcpTensor> stored_;
  std::map<std::string, std::uint64_t> sizes_;
};

}  // namespace

Result<std::unique_ptr<TensorArchive>> open_dcp_folder(world::FileSource& files, const std::string& path,
                                                       world::ReadableFile& metadata) {
  const std::string name = path + kDcpMetadataFile;
  if (metadata.size() > kMetadataBytesMax) {
    return bad(name + ": " + std::to_string(metadata.size()) + " bytes, at most " + std::to_string(kMetadataBytesMax) +
               " are read");
  }
  Bytes bytes(metadata.size());
  TRY(metadata.read_at(0, bytes), name);
  DcpMetadata parsed = TRY(parse_dcp_metadata(std::move(bytes)), name);
  auto archive = std::make_unique<DcpFolder>(files, path);
  TRY(archive->list(std::move(parsed)), path);
  return std::unique_ptr<TensorArchive>(std::move(archive));
}

}  // namespace holdfast::store
