// Reading `.metadata`.
#include "store/dcp_metadata.h"

#include <algorithm>
#include <array>
#include <map>

#include "store/pickle.h"
#include "store/shown.h"
#include "store/torch_tensor.h"

namespace holdfast::store {
namespace {

constexpr std::array kGlobals = std::to_array<std::string_view>({
    "builtins getattr",  // how some Pythons write an enumerator
    "pathlib PosixPath",
    "pathlib PurePosixPath",
    "pathlib WindowsPath",
    "pathlib._local PosixPath",
    "pathlib._local WindowsPath",
    "torch.distributed._shard.sharded_tensor.metadata MEM_FORMAT_ENCODING",
    "torch.distributed._shard.sharded_tensor.metadata TensorProperties",
    "torch.distributed.checkpoint.filesystem _StorageInfo",
    "torch.distributed.checkpoint.metadata BytesStorageMetadata",
    "torch.distributed.checkpoint.metadata ChunkStorageMetadata",
    "torch.distributed.checkpoint.metadata Metadata",
    "torch.distributed.checkpoint.metadata MetadataIndex",
    "torch.distributed.checkpoint.metadata StorageMeta",
    "torch.distributed.checkpoint.metadata TensorProperties",
    "torch.distributed.checkpoint.metadata TensorStorageMetadata",
    "torch.distributed.checkpoint.metadata _MEM_FORMAT_ENCODING",
    "torch Size",
    "torch.serialization _get_layout",
});
constexpr std::string_view kModule = "torch.distributed.checkpoint.metadata ";
constexpr std::string_view kTorch = "torch ";

Error bad(const std::string& why) { return {Code::BadInput, why}; }

bool is_dcp_global(std::string_view global) {
  return std::find(kGlobals.begin(), kGlobals.end(), global) != kGlobals.end() ||
         (global.substr(0, kTorch.size()) == kTorch && torch_dtype(global.substr(kTorch.size())) != nullptr);
}

class Reader {
 public:
  explicit Reader(const Pickle& pickle) : pickle_(pickle) {}

  Result<DcpMetadata> read() {
    if (!is_a(pickle_.root(), "Metadata")) return bad("it describes no checkpoint");
    const PickleValue* tensors = field(pickle_.root(), "state_dict_metadata");
    const PickleValue* storage = field(pickle_.root(), "storage_data");
    if (tensors == nullptr || storage == nullptr || tensors->kind != PickleKind::Dict ||
        storage->kind != PickleKind::Dict) {
      return bad("it lists no tensors, or not where they are kept");
    }
    if (Status done = read_items(pickle_.items(*storage)); !done) return std::move(done).error();
    DcpMetadata metadata;
    const auto entries = pickle_.items(*tensors);
    for (std::size_t i = 0; i + 1 < entries.size(); i += 2) {
      if (entries[i].kind != PickleKind::Text) return bad("a name that is no text");
      std::string name(pickle_.text(entries[i]));
      if (is_a(entries[i + 1], "BytesStorageMetadata")) {
        metadata.others.push_back(std::move(name));
      } else {
        metadata.tensors.push_back(TRY(read_tensor(name, entries[i + 1]), "tensor " + shown(name)));
      }
    }
    return metadata;
  }

 private:
  bool is_a(const PickleValue& value, std::string_view name) const {
    const std::string_view called = pickle_.called(value);
    return called.size() == kModule.size() + name.size() && called.substr(0, kModule.size()) == kModule &&
           called.substr(kModule.size()) == name;
  }

  /// An attribute of an object: its state is a dict.
  const PickleValue* field(const PickleValue& object, std::string_view name) const {
    const auto parts = pickle_.items(object);
    if (object.kind != PickleKind::Call || parts.size() != 3 || parts[2].kind != PickleKind::Dict) return nullptr;
    const auto state = pickle_.items(parts[2]);
    for (std::size_t i = 0; i + 1 < state.size(); i += 2) {
      if (pickle_.text(state[i]) == name) return &state[i + 1];
    }
    return nullptr;
  }

  Result<std::vector<std::uint64_t>> counts(const PickleValue& object, std::string_view name) const {
    const PickleValue* value = field(object, name);
    if (value == nullptr) return bad("without " + std::string(name));
    return torch_counts(pickle_, *value);
  }

  static std::string key(std::string_view name, std::span<const std::uint64_t> offsets) {
    std::string text(name);
    for (const std::uint64_t offset : offsets) text += '\0' + std::to_string(offset);
    return text;
  }

  Status read_items(std::span<const PickleValue> entries) {
    for (std::size_t i = 0; i + 1 < entries.size(); i += 2) {
      const PickleValue* name = field(entries[i], "fqn");
      if (!is_a(entries[i], "MetadataIndex") || name == nullptr || name->kind != PickleKind::Text) {
        return bad("an item without a name");
      }
      const PickleValue* offset = field(entries[i], "offset");
      if (offset == nullptr || offset->kind == PickleKind::None) continue;  // no tensor
      const auto offsets = TRY(torch_counts(pickle_, *offset), "an item of " + shown(pickle_.text(*name)));
      DcpItem item = TRY(read_item(entries[i + 1]), "an item of " + shown(pickle_.text(*name)));
      if (!items_.emplace(key(pickle_.text(*name), offsets), std::move(item)).second) {
        return bad("two items of " + shown(pickle_.text(*name)) + " at the same place");
      }
    }
    return Ok{};
  }

  Result<DcpItem> read_item(const PickleValue& value) const {
    if (pickle_.called(value) != "torch.distributed.checkpoint.filesystem _StorageInfo")
      return bad("of an unknown kind");
    const PickleValue* file = field(value, "relative_path");
    const PickleValue* begin = field(value, "offset");
    const PickleValue* size = field(value, "length");
    if (file == nullptr || begin == nullptr || size == nullptr || file->kind != PickleKind::Text ||
        begin->kind != PickleKind::Int || size->kind != PickleKind::Int || Pickle::integer(*begin) < 0 ||
        Pickle::integer(*size) < 0) {
      return bad("without a place");
    }
    DcpItem item{std::string(pickle_.text(*file)), begin->at, size->at, false};
    const std::string inside = "/" + item.file + "/";
    if (item.file.empty() || item.file.front() == '/' || inside.find("/../") != std::string::npos ||
        item.file.find('\0') != std::string::npos) {
      return bad("kept outside the folder, in " + shown(item.file));
    }
    const PickleValue* transforms = field(value, "transform_descriptors");
    item.transformed =
        transforms != nullptr && transforms->kind != PickleKind::None && !pickle_.items(*transforms).empty();
    return item;
  }

  Result<DcpTensor> read_tensor(const std::string& name, const PickleValue& value) const {
    if (!is_a(value, "TensorStorageMetadata")) return bad("of an unknown kind");
    DcpTensor tensor;
    tensor.name = name;
    tensor.dtype = TRY(read_dtype(value), "properties");
    tensor.shape = TRY(counts(value, "size"), "size");
    std::uint64_t bytes = tensor.dtype->bytes;
    for (const std::uint64_t dimension : tensor.shape) {
      if (__builtin_mul_overflow(bytes, dimension, &bytes)) return bad("its size is beyond 64 bits");
    }
    const PickleValue* chunks = field(value, "chunks");
    if (chunks == nullptr || chunks->kind != PickleKind::List) return bad("without chunks");
    std::vector<Box> boxes;
    for (const PickleValue& chunk : pickle_.items(*chunks)) {
      Box box;  // member by member: a return from within its braces would leak what is there already
      box.begin = TRY(counts(chunk, "offsets"), "chunk");
      box.shape = TRY(counts(chunk, "sizes"), "chunk");
      if (std::find(box.shape.begin(), box.shape.end(), 0U) == box.shape.end()) boxes.push_back(std::move(box));
    }
    if (Status done = check_cover(tensor.shape, boxes); !done) return std::move(done).error();
    for (const Box& box : boxes) {
      const auto item = items_.find(key(name, box.begin));
      if (item == items_.end()) return bad("a chunk is kept nowhere");
      tensor.items.push_back(item->second);
    }
    tensor.boxes = std::move(boxes);
    return tensor;
  }

  Result<const TorchDtype*> read_dtype(const PickleValue& value) const {
    const PickleValue* properties = field(value, "properties");
    if (properties == nullptr || properties->kind != PickleKind::Call) return bad("missing");
    const auto parts = pickle_.items(*properties);
    const auto state = parts.size() == 3 ? pickle_.items(parts[2]) : std::span<const PickleValue>();
    const TorchDtype* dtype = state.empty() ? nullptr : torch_dtype_global(pickle_, state[0]);
    if (dtype == nullptr) return bad("of no type that is read here");
    return dtype;
  }

  const Pickle& pickle_;
  std::map<std::string, DcpItem> items_;
};

}  // namespace

Result<DcpMetadata> parse_dcp_metadata(Bytes pickle) {
  const Pickle parsed = TRY(parse_pickle(std::move(pickle), is_dcp_global), "checkpoint");
  return Reader(parsed).read();
}

}  // namespace holdfast::store
