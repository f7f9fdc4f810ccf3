#include "store/torch_file.h"

#include <algorithm>
#include <atomic>

#include "store/dtype.h"
#include "store/shown.h"

namespace holdfast::store {
namespace {

constexpr std::uint64_t kPickleBytesMax = std::uint64_t{256} << 20U;
constexpr std::uint64_t kByteorderBytesMax = 16;
constexpr std::size_t kDepthMax = 100;

Error bad(const std::string& why) { return {Code::BadInput, why}; }

/// A value that the pickle names by its path from the root.
struct NamedTensor {
  std::string name;
  TorchTensor tensor;
};

/// Walks what a pickle holds. A value may hold itself, or the same one many times over: depth and steps are bounded.
class Flattener {
 public:
  explicit Flattener(const Pickle& pickle) : pickle_(pickle), steps_left_(64 + pickle.bytes()) {}

  Status walk(const std::string& name, const PickleValue& value, std::size_t depth) {
    if (depth > kDepthMax) return bad(shown(name) + " lies deeper than " + std::to_string(kDepthMax) + " levels");
    const std::uint64_t cost = 1 + name.size() / 32;
    if (steps_left_ < cost) return bad(shown(name) + ": it holds itself, or the same values over and over");
    steps_left_ -= cost;
    std::optional<TorchTensor> tensor = TRY(torch_tensor(pickle_, value), "tensor " + shown(name));
    if (tensor) {
      tensors.push_back({depth == 0 ? "tensor" : name, *std::move(tensor)});
      return Ok{};
    }
    const auto items = pickle_.items(value);
    if (value.kind == PickleKind::Dict) return walk_dict(name, items, depth);
    if (value.kind == PickleKind::List || value.kind == PickleKind::Tuple) {
      for (std::size_t i = 0; i < items.size(); ++i) {
        if (Status done = walk(inside(name, std::to_string(i), depth), items[i], depth + 1); !done) return done;
      }
      return Ok{};
    }
    others.push_back(name);
    return Ok{};
  }

  std::vector<NamedTensor> tensors;
  std::vector<std::string> others;

 private:
  Status walk_dict(const std::string& name, std::span<const PickleValue> items, std::size_t depth) {
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      std::string key;
      if (items[i].kind == PickleKind::Text) {
        key = pickle_.text(items[i]);
      } else if (items[i].kind == PickleKind::Int) {
        key = std::to_string(Pickle::integer(items[i]));
      } else {
        return bad("a key of the dict " + (name.empty() ? "at the top" : shown(name)) + " is neither text nor integer");
      }
      if (Status done = walk(inside(name, key, depth), items[i + 1], depth + 1); !done) return done;
    }
    return Ok{};
  }

  static std::string inside(const std::string& name, const std::string& key, std::size_t depth) {
    return depth == 0 ? key : name + "." + key;
  }

  const Pickle& pickle_;
  std::uint64_t steps_left_;
};

class TorchFile final : public TensorArchive {
 public:
  TorchFile(std::unique_ptr<world::ReadableFile> file, TorchZip zip, const std::string& path)
      : TensorArchive(path, kTorchKind), file_(std::move(file)), zip_(std::move(zip)) {
    file_bytes_ = file_->size();
  }

  Status list() {
    Flattener found(zip_.pickle());
    if (Status done = found.walk("", zip_.pickle().root(), 0); !done) return done;
    others_ = std::move(found.others);
    std::map<std::string, std::string> first_of;  // by what it shows
    for (NamedTensor& each : found.tensors) {
      ArchivedTensor tensor{
          each.name, std::string(each.tensor.dtype->name), each.tensor.counted_shape(), each.tensor.bytes(), "", ""};
      if (each.tensor.meta) {
        tensor.bytes = 0;
        tensor.unreadable = "it was saved without its elements, from the device meta";
      } else {
        TRY(zip_.storage(each.tensor), "tensor " + shown(each.name));
        checked_[each.tensor.storage] = false;
        const std::string& first = first_of.emplace(shows(each.tensor), each.name).first->second;
        if (first != each.name && each.tensor.elements() > 0) tensor.tied_to = first;
      }
      if (each.tensor.dtype->packed != 1 && each.tensor.shape.empty()) {
        tensor.unreadable = "a scalar of packed elements";
      }
      tensors_.push_back(std::move(tensor));
      views_.push_back(std::move(each.tensor));
    }
    return check_tensors();
  }

 private:
  /// Alike for tensors that show the same elements of the same storage.
  static std::string shows(const TorchTensor& tensor) {
    std::string text = std::string(tensor.dtype->name) + ' ' + std::to_string(tensor.offset);
    text += shape_text(tensor.shape) + shape_text(tensor.stride);
    text += tensor.conjugate ? 'c' : '-';
    text += tensor.negative ? 'n' : '-';
    return text + tensor.storage;
  }

  Status read_elements(std::size_t index, std::span<std::byte> out) override {
    std::atomic<bool>& checked = checked_.at(views_[index].storage);
    TRY(zip_.read(views_[index], out, checked), "storage " + shown(views_[index].storage));
    checked = true;
    return Ok{};
  }

  std::unique_ptr<world::ReadableFile> file_;
  TorchZip zip_;
  std::vector<TorchTensor> views_;
  std::map<std::string, std::atomic<bool>> checked_;
};

}  // namespace

Result<TorchZip> TorchZip::open(const FileSlice& slice) {
  ZipFile zip = TRY(ZipFile::open(slice), "open");
  std::string folder;
  for (const auto& [name, entry] : zip.entries()) {
    const std::size_t slash = name.find('/');
    if (slash == std::string::npos || name.substr(slash + 1) != "data.pkl") continue;
    if (!folder.empty()) return bad("two pickles, " + shown(folder) + " and " + shown(name));
    folder = name.substr(0, slash + 1);
  }
  if (folder.empty()) return bad("a zip file, but none of torch.save: it has no data.pkl");
  if (zip.find(folder + "constants.pkl") != nullptr) {
    return bad("a TorchScript program; save its state_dict() with torch.save");
  }
  if (zip.find(folder + "byteorder") != nullptr) {
    const Bytes order = TRY(zip.read(folder + "byteorder", kByteorderBytesMax), "byteorder");
    if (as_text(order) != "little") return bad("written on a big-endian machine; save it again on a little-endian one");
  }
  Bytes bytes = TRY(zip.read(folder + "data.pkl", kPickleBytesMax), "read");
  Pickle pickle = TRY(parse_pickle(std::move(bytes), is_torch_global), shown(folder) + "data.pkl");
  return TorchZip(std::move(zip), std::move(pickle), std::move(folder));
}

Result<ZipEntry> TorchZip::storage(const TorchTensor& tensor) const {
  const std::string name = folder_ + "data/" + tensor.storage;
  const ZipEntry* entry = zip_.find(name);
  if (entry == nullptr) return bad("there is no storage " + shown(name));
  if (entry->size != tensor.storage_bytes) {
    return bad("storage " + shown(name) + " has " + std::to_string(entry->size) + " bytes, not " +
               std::to_string(tensor.storage_bytes));
  }
  return *entry;
}

Status TorchZip::read(const TorchTensor& tensor, std::span<std::byte> out, bool checked) const {
  const ZipEntry entry = TRY(storage(tensor), "read");
  const std::uint64_t begin = tensor.begin();
  const std::uint64_t size = tensor.end() - begin;
  AlignedBytes aside(tensor.contiguous() ? 0 : size);
  const std::span<std::byte> stored = tensor.contiguous() ? out : aside.all();
  if (checked) {
    TRY(zip_.slice().read_at(entry.begin + begin, stored), "read");
  } else {
    TRY(zip_.read_checked(entry, begin, stored), "read");
  }
  gather_elements(tensor, stored, out);
  return Ok{};
}

Result<std::unique_ptr<TensorArchive>> open_torch_file(std::unique_ptr<world::ReadableFile> file,
                                                       const std::string& path) {
  const FileSlice slice{file.get(), 0, file->size()};
  TorchZip zip = TRY(TorchZip::open(slice), path);
  auto archive = std::make_unique<TorchFile>(std::move(file), std::move(zip), path);
  TRY(archive->list(), path);
  return std::unique_ptr<TensorArchive>(std::move(archive));
}

}  // namespace holdfast::store
