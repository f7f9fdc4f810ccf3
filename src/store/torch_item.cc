#include "store/torch_item.h"

#include <algorithm>

#include "store/crc32.h"
#include "store/pickle_writer.h"

namespace holdfast::store {
namespace {

constexpr std::uint64_t kDataAlignment = 64;  // as torch has it, so that its readers can map the data
constexpr std::uint64_t kLocalBytes = 30;
constexpr std::uint64_t kExtraHeadBytes = 4;
constexpr std::uint64_t k64ExtraBytes = 20;      // two sizes
constexpr std::uint16_t kPaddingExtra = 0x4246;  // "FB", which torch pads with
constexpr std::uint16_t k64Extra = 1;
constexpr std::uint16_t kUtf8 = 0x0800;
constexpr std::uint16_t kSizesFollow = 0x0008;
constexpr std::uint16_t kVersion64 = 45;
constexpr std::uint32_t kIn64 = 0xFFFF'FFFF;
constexpr const char* kFolder = "data/";

std::vector<std::uint64_t> row_major_strides(std::span<const std::uint64_t> shape) {
  std::vector<std::uint64_t> strides(shape.size());
  std::uint64_t next = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = next;
    next *= std::max<std::uint64_t>(shape[i], 1);
  }
  return strides;
}

Bytes tensor_pickle(const TorchDtype& dtype, std::span<const std::uint64_t> shape, std::uint64_t data_bytes) {
  const bool typed = !dtype.storage.empty();
  PickleWriter out;
  out.global("torch._utils", typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3").mark();
  out.mark().text("storage");
  out.global(typed ? "torch" : "torch.storage", typed ? dtype.storage : "UntypedStorage");
  out.text("0").text("cpu").integer(typed ? data_bytes / dtype.bytes : data_bytes).tuple().persistent();
  out.integer(0).counts(shape).counts(row_major_strides(shape)).truth(false);
  out.global("collections", "OrderedDict").empty_tuple().call();
  if (!typed) out.global("torch", dtype.torch);
  out.tuple().call();
  return std::move(out).finish();
}

/// The beginning that a local header and an entry of the directory share.
void put_common(ByteWriter& out, std::uint16_t flags, std::uint32_t crc, std::uint32_t size, std::size_t name_bytes,
                std::uint64_t extra_bytes) {
  out.put(kVersion64);
  out.put(flags);
  out.put(std::uint16_t{0});  // stored
  out.put(std::uint32_t{0});  // no time
  out.put(crc);
  out.put(size);
  out.put(size);
  out.put(static_cast<std::uint16_t>(name_bytes));
  out.put(static_cast<std::uint16_t>(extra_bytes));
}

void append(Bytes& out, ByteWriter&& more) {
  const Bytes bytes = std::move(more).take();
  out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace

TorchItem::TorchItem(const TorchDtype& dtype, std::span<const std::uint64_t> shape) : data_bytes_(dtype.bytes) {
  for (const std::uint64_t dimension : shape) data_bytes_ *= dimension;
  add("data.pkl", tensor_pickle(dtype, shape, data_bytes_), head_);
  add("byteorder", as_bytes("little"), head_);
  add("version", as_bytes("3\n"), head_);
  begin_data(head_);
}

void TorchItem::add(const std::string& name, BytesView data, Bytes& out) {
  Entry entry{kFolder + name, crc32(data), data.size(), out.size()};
  ByteWriter header;
  header.put(std::uint32_t{0x04034B50});
  put_common(header, kUtf8, entry.crc, static_cast<std::uint32_t>(entry.size), entry.name.size(), 0);
  header.put_bytes(as_bytes(entry.name));
  header.put_bytes(data);
  append(out, std::move(header));
  entries_.push_back(std::move(entry));
}

void TorchItem::begin_data(Bytes& out) {
  Entry entry{std::string(kFolder) + "data/0", 0, data_bytes_, out.size()};
  const std::uint64_t unpadded = out.size() + kLocalBytes + entry.name.size() + k64ExtraBytes + kExtraHeadBytes;
  const std::uint64_t padding = (kDataAlignment - unpadded % kDataAlignment) % kDataAlignment;
  ByteWriter header;
  header.put(std::uint32_t{0x04034B50});
  put_common(header, kUtf8 | kSizesFollow, 0, kIn64, entry.name.size(), k64ExtraBytes + kExtraHeadBytes + padding);
  header.put_bytes(as_bytes(entry.name));
  header.put(k64Extra);
  header.put(std::uint16_t{k64ExtraBytes - kExtraHeadBytes});
  header.put(data_bytes_);
  header.put(data_bytes_);
  header.put(kPaddingExtra);
  header.put(static_cast<std::uint16_t>(padding));
  header.put_bytes(as_bytes(std::string(padding, 'Z')));
  append(out, std::move(header));
  entries_.push_back(std::move(entry));
}

Bytes TorchItem::tail(std::uint32_t crc) const {
  ByteWriter out;
  out.put(std::uint32_t{0x08074B50});
  out.put(crc);
  out.put(data_bytes_);
  out.put(data_bytes_);
  constexpr std::uint64_t kDescriptorBytes = 24;
  const std::uint64_t directory = head_.size() + data_bytes_ + kDescriptorBytes;
  std::uint64_t directory_bytes = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    const bool data = i + 1 == entries_.size();
    const std::uint64_t extra = data ? k64ExtraBytes : 0;
    out.put(std::uint32_t{0x02014B50});
    out.put(kVersion64);
    put_common(out, data ? kUtf8 | kSizesFollow : kUtf8, data ? crc : entry.crc,
               data ? kIn64 : static_cast<std::uint32_t>(entry.size), entry.name.size(), extra);
    out.put(std::uint16_t{0});  // no comment
    out.put(std::uint32_t{0});  // first disk, no attributes
    out.put(std::uint32_t{0});
    out.put(static_cast<std::uint32_t>(entry.header));  // the data comes last: every header lies near the start
    out.put_bytes(as_bytes(entry.name));
    if (data) {
      out.put(k64Extra);
      out.put(std::uint16_t{k64ExtraBytes - kExtraHeadBytes});
      out.put(data_bytes_);
      out.put(data_bytes_);
    }
    directory_bytes += 46 + entry.name.size() + extra;
  }
  const std::uint64_t entries = entries_.size();
  out.put(std::uint32_t{0x06064B50});
  out.put(std::uint64_t{44});  // bytes of this record that follow
  out.put(kVersion64);
  out.put(kVersion64);
  out.put(std::uint64_t{0});  // one disk
  out.put(entries);
  out.put(entries);
  out.put(directory_bytes);
  out.put(directory);
  out.put(std::uint32_t{0x07064B50});
  out.put(std::uint32_t{0});
  out.put(directory + directory_bytes);
  out.put(std::uint32_t{1});
  out.put(std::uint32_t{0x06054B50});
  out.put(std::uint32_t{0});
  out.put(static_cast<std::uint16_t>(entries));
  out.put(static_cast<std::uint16_t>(entries));
  out.put(static_cast<std::uint32_t>(directory_bytes));
  out.put(static_cast<std::uint32_t>(std::min<std::uint64_t>(directory, kIn64)));
  out.put(std::uint16_t{0});
  return std::move(out).take();
}

std::uint64_t TorchItem::bytes() const { return head_.size() + data_bytes_ + tail(0).size(); }

}  // namespace holdfast::store
