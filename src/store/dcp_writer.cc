// Writing a folder.
#include <algorithm>

#include "store/crc32.h"
#include "store/dcp_folder.h"
#include "store/dcp_metadata.h"
#include "store/dtype.h"
#include "store/pickle_writer.h"
#include "store/piece_stream.h"
#include "store/torch_item.h"

namespace holdfast::store {
namespace {

constexpr const char* kDataFile = "__0_0.distcp";
constexpr const char* kModule = "torch.distributed.checkpoint.metadata";

Result<DcpTensor> described(const TensorInfo& info) {
  DcpTensor tensor;
  tensor.name = info.name;
  tensor.dtype = torch_dtype_named(info.dtype);
  tensor.shape = info.shape;
  if (tensor.dtype == nullptr) return Error(Code::BadInput, "torch has no type for elements of " + info.dtype);
  if (tensor.dtype->packed != 1) {
    if (tensor.shape.empty() || tensor.shape.back() % tensor.dtype->packed != 0) {
      return Error(Code::BadInput, info.dtype + " of shape " + shape_text(info.shape) + " fills no whole bytes");
    }
    tensor.shape.back() /= tensor.dtype->packed;
  }
  return tensor;
}

void put_size(PickleWriter& out, std::span<const std::uint64_t> counts) {
  out.global("torch", "Size").mark().counts(counts).tuple().call();
}

void put_tensor(PickleWriter& out, const DcpTensor& tensor) {
  out.global(kModule, "TensorStorageMetadata").empty_tuple().object().dict().mark();
  out.text("properties").global(kModule, "TensorProperties").empty_tuple().object().mark();
  out.global("torch", tensor.dtype->torch);
  out.global("torch.serialization", "_get_layout").mark().text("torch.strided").tuple().call();
  out.truth(false);
  out.global(kModule, "_MEM_FORMAT_ENCODING").mark().integer(0).tuple().call();
  out.truth(false).tuple().state();
  out.text("size");
  put_size(out, tensor.shape);
  out.text("chunks").list().mark();
  for (const Box& box : tensor.boxes) {
    out.global(kModule, "ChunkStorageMetadata").empty_tuple().object().dict().mark();
    out.text("offsets");
    put_size(out, box.begin);
    out.text("sizes");
    put_size(out, box.shape);
    out.set_all().state();
  }
  out.append_all().set_all().state();
}

void put_items(PickleWriter& out, const DcpTensor& tensor) {
  for (std::size_t i = 0; i < tensor.items.size(); ++i) {
    out.global(kModule, "MetadataIndex").empty_tuple().object().dict().mark();
    out.text("fqn").text(tensor.name).text("offset");
    put_size(out, tensor.boxes[i].begin);
    out.text("index").integer(i).set_all().state();
    out.global("torch.distributed.checkpoint.filesystem", "_StorageInfo").empty_tuple().object().dict().mark();
    out.text("relative_path").text(tensor.items[i].file);
    out.text("offset").integer(tensor.items[i].begin);
    out.text("length").integer(tensor.items[i].size);
    out.set_all().state();
  }
}

/// Streams the data file; gives each tensor its item.
Status write_data(world::FileTarget& files, const std::string& path, std::vector<DcpTensor>& tensors,
                  const FillTensor& fill, const std::string& aside) {
  std::uint64_t total = 0;
  for (DcpTensor& tensor : tensors) {
    const std::uint64_t size = TorchItem(*tensor.dtype, tensor.shape).bytes();
    tensor.boxes.push_back({std::vector<std::uint64_t>(tensor.shape.size()), tensor.shape});
    tensor.items.push_back({kDataFile, total, size, false});
    total += size;
  }
  const world::Pieces pieces{.head = 0, .piece = files.piece_bytes(path, total), .total = total};
  const auto file = TRY(files.begin(path, aside, pieces), "create");
  PieceStream stream(*file, pieces);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TorchItem item(*tensors[i].dtype, tensors[i].shape);
    AlignedBytes memory(item.data_bytes());
    if (Status filled = fill(i, memory.all()); !filled) return filled;
    for (const BytesView part : {item.head(), BytesView(memory.all())}) TRY(stream.append(part), "write " + path);
    TRY(stream.append(item.tail(crc32(memory.all()))), "write " + path);
  }
  TRY(stream.finish(), "write " + path);
  return file->commit();
}

Status write_whole(world::FileTarget& files, const std::string& path, BytesView bytes, const std::string& aside) {
  const world::Pieces pieces{.head = 0, .piece = files.piece_bytes(path, bytes.size()), .total = bytes.size()};
  const auto file = TRY(files.begin(path, aside, pieces), "create");
  PieceStream stream(*file, pieces);
  TRY(stream.append(bytes), "write " + path);
  TRY(stream.finish(), "write " + path);
  return file->commit();
}

}  // namespace

Bytes format_dcp_metadata(const DcpMetadata& metadata) {
  PickleWriter out;
  out.global(kModule, "Metadata").empty_tuple().object().dict().mark();
  out.text("state_dict_metadata").dict().mark();
  for (const DcpTensor& tensor : metadata.tensors) {
    out.text(tensor.name);
    put_tensor(out, tensor);
  }
  out.set_all().text("planner_data").dict().mark();
  for (const DcpTensor& tensor : metadata.tensors) out.text(tensor.name).mark().text(tensor.name).tuple();
  out.set_all().text("storage_data").dict().mark();
  for (const DcpTensor& tensor : metadata.tensors) put_items(out, tensor);
  out.set_all().text("storage_meta").none();
  out.text("version").text("1.0.0").set_all().state();
  return std::move(out).finish();
}

Status write_dcp_folder(world::FileTarget& files, const std::string& path, std::span<const TensorInfo> tensors,
                        const std::map<std::string, std::string>& tied, const FillTensor& fill,
                        const std::string& aside) {
  std::vector<DcpTensor> described_tensors;
  for (const TensorInfo& each : tensors) described_tensors.push_back(TRY(described(each), "tensor " + each.name));
  if (Status done = write_data(files, path + "/" + kDataFile, described_tensors, fill, aside); !done) return done;
  std::map<std::string, const DcpTensor*> by_name;
  for (const DcpTensor& each : described_tensors) by_name.emplace(each.name, &each);
  DcpMetadata metadata{described_tensors, {}};
  for (const auto& [second, name] : tied) {
    DcpTensor same = *by_name.at(name);
    same.name = second;
    metadata.tensors.push_back(std::move(same));
  }
  return write_whole(files, path + kDcpMetadataFile, format_dcp_metadata(metadata), aside);
}

}  // namespace holdfast::store
