#include "store/tensorizer_file.h"

#include <algorithm>
#include <array>

#include "store/dtype.h"
#include "store/shown.h"
#include "store/tensorizer_crypt.h"
#include "store/tensorizer_hashes.h"
#include "store/torch_dtype.h"

namespace holdfast::store {
namespace {

constexpr std::uint64_t kBlockBytes = std::uint64_t{1} << 20U;
constexpr std::uint64_t kEndBytes = 8;
constexpr std::uint32_t kEmptyVersion = 4;  // from it on a tensor may come without its elements
constexpr std::size_t kWordBytes = 8;

Error bad(const std::string& why) { return {Code::BadInput, why}; }

struct NumpyDtype {
  std::string_view numpy;
  std::string_view torch;
};

constexpr std::array kNumpy = std::to_array<NumpyDtype>({
    {"|b1", "bool"},
    {"|i1", "int8"},
    {"|u1", "uint8"},
    {"<i2", "int16"},
    {"<u2", "uint16"},
    {"<i4", "int32"},
    {"<u4", "uint32"},
    {"<i8", "int64"},
    {"<u8", "uint64"},
    {"<f2", "float16"},
    {"<f4", "float32"},
    {"<f8", "float64"},
    {"<c8", "complex64"},
    {"<c16", "complex128"},
});

/// None for a type that is not known.
const TorchDtype* element_type(std::string_view text) {
  const std::size_t nul = text.find('\0');
  if (nul == std::string_view::npos) {
    const auto* found =
        std::find_if(kNumpy.begin(), kNumpy.end(), [&](const NumpyDtype& each) { return each.numpy == text; });
    return found == kNumpy.end() ? nullptr : torch_dtype(found->torch);
  }
  constexpr std::string_view kTorch = "torch.";
  const std::string_view name = text.substr(nul + 1);
  const std::string_view carrier = text.substr(0, nul);
  if (name.substr(0, kTorch.size()) != kTorch) return nullptr;
  const TorchDtype* dtype = torch_dtype(name.substr(kTorch.size()));
  if (dtype == nullptr || carrier.size() < 3 || (carrier[0] != '<' && carrier[0] != '|') || carrier[1] != 'V' ||
      carrier.substr(2) != std::to_string(dtype->bytes)) {
    return nullptr;
  }
  return dtype;
}

class TensorizerFile final : public TensorArchive {
 public:
  TensorizerFile(std::unique_ptr<world::ReadableFile> file, const std::string& path, TensorizerHead head,
                 std::vector<TensorizerEntry> entries, const std::optional<std::string>& secret)
      : TensorArchive(path, kTensorizerKind),
        file_(std::move(file)),
        head_(head),
        entries_(std::move(entries)),
        keys_(secret.value_or("")) {
    file_bytes_ = file_->size();
  }

  Status list() {
    if (Status done = check_coverage(); !done) return done;
    for (const TensorizerEntry& entry : entries_) {
      ArchivedTensor tensor;
      tensor.name = TRY(tensorizer_name(entry), "index");
      tensor.shape = entry.shape;
      const TorchDtype* dtype = element_type(entry.dtype);
      if (dtype == nullptr) {
        tensor.dtype = shown(entry.dtype);
        tensor.unreadable = "its elements are of a type that is not read here: " + tensor.dtype;
      } else {
        if (Status done = measure(entry, *dtype, tensor); !done) return done;
      }
      tensors_.push_back(std::move(tensor));
    }
    return check_tensors();
  }

 private:
  Status measure(const TensorizerEntry& entry, const TorchDtype& dtype, ArchivedTensor& tensor) const {
    tensor.dtype = dtype.name;
    std::uint64_t bytes = dtype.bytes;
    for (const std::uint64_t dimension : entry.shape) {
      if (__builtin_mul_overflow(bytes, dimension, &bytes)) {
        return bad("tensor " + shown(tensor.name) + ": shape " + shape_text(entry.shape) + " is beyond 64 bits");
      }
    }
    if (bytes != entry.data_bytes && (entry.data_bytes != 0 || head_.version < kEmptyVersion)) {
      return bad("tensor " + shown(tensor.name) + " of shape " + shape_text(entry.shape) + " and " + tensor.dtype +
                 " needs " + std::to_string(bytes) + " bytes, but has " + std::to_string(entry.data_bytes));
    }
    if (!tensor.shape.empty()) tensor.shape.back() *= dtype.packed;
    tensor.bytes = bytes;
    return Ok{};
  }

  /// Header and data of each tensor follow those of the one before, from the index to a zero that ends the file: so
  /// none can be missing, and no byte belongs to two.
  Status check_coverage() const {
    std::vector<const TensorizerEntry*> by_place;
    for (const TensorizerEntry& each : entries_) by_place.push_back(&each);
    std::sort(by_place.begin(), by_place.end(),
              [](const TensorizerEntry* a, const TensorizerEntry* b) { return a->header_begin < b->header_begin; });
    std::uint64_t next = kTensorizerHeaderBytes + head_.index_bytes;
    for (const TensorizerEntry* each : by_place) {
      const std::string tensor = "tensor " + shown(each->name);
      if (each->header_begin != next) {
        return bad(tensor + " begins at byte " + std::to_string(each->header_begin) +
                   ", not where the one before it ends (" + std::to_string(next) + ")");
      }
      if (each->data_begin < each->header_begin || each->data_begin > file_bytes_ ||
          each->data_bytes > file_bytes_ - each->data_begin || each->data_begin - each->header_begin < kWordBytes) {
        return bad(tensor + " (" + std::to_string(each->data_bytes) + " bytes from " +
                   std::to_string(each->data_begin) + " on) lies outside the file, which has " +
                   std::to_string(file_bytes_) + ": is it cut off?");
      }
      next = each->data_begin + each->data_bytes;
    }
    if (file_bytes_ - next != kEndBytes) {
      return bad("its tensors end at byte " + std::to_string(next) + " and 8 more should follow, but the file has " +
                 std::to_string(file_bytes_));
    }
    Bytes end(kEndBytes);
    TRY(file_->read_at(next, end), "read the end");
    if (end != Bytes(kEndBytes)) return bad("no end mark behind its tensors: it holds more than its index has");
    return Ok{};
  }

  Status read_elements(std::size_t index, std::span<std::byte> out) override {
    const TensorizerEntry& entry = entries_.at(index);
    Bytes header(entry.data_begin - entry.header_begin);
    TRY(file_->read_at(entry.header_begin, header), "header");
    const TensorizerRecord record = TRY(parse_tensorizer_record(header, entry, head_.encrypted), "damaged");
    TensorizerHashes hashes(record.hashes);
    hashes.add(record.hashed);
    if (entry.data_bytes == 0) {
      std::fill(out.begin(), out.end(), std::byte{0});
    } else if (record.crypt) {
      TRY(file_->read_at(entry.data_begin, out), "data");
      const TensorizerKey key = TRY(keys_.key(*record.crypt), "decrypt");
      TRY(decrypt_tensorizer(*record.crypt, key, out), "decrypt");
      hashes.add(out);
    } else {
      for (std::uint64_t at = 0; at < out.size(); at += kBlockBytes) {
        const std::span<std::byte> block = out.subspan(at, std::min<std::uint64_t>(kBlockBytes, out.size() - at));
        TRY(file_->read_at(entry.data_begin + at, block), "data");
        hashes.add(block);
      }
    }
    if (hashes.match()) return Ok{};
    return Error(Code::Corrupt, "bytes " + std::to_string(entry.header_begin) + " to " +
                                    std::to_string(entry.data_begin + entry.data_bytes) +
                                    " do not match their hashes; restore the file from a copy");
  }

  std::unique_ptr<world::ReadableFile> file_;
  TensorizerHead head_;
  std::vector<TensorizerEntry> entries_;
  TensorizerKeys keys_;
};

}  // namespace

Result<std::unique_ptr<TensorArchive>> open_tensorizer_file(std::unique_ptr<world::ReadableFile> file,
                                                            const std::string& path,
                                                            const std::optional<std::string>& secret) {
  Bytes first(std::min(file->size(), kTensorizerHeaderBytes));
  TRY(file->read_at(0, first), path);
  const TensorizerHead head = TRY(parse_tensorizer_head(first, file->size()), path);
  if (head.encrypted && !secret) return bad(path + ": is encrypted; give the key or the text it was encrypted with");
  if (!head.encrypted && secret) return bad(path + ": is not encrypted, so no key fits it; load it without one");
  Bytes index(head.index_bytes);
  TRY(file->read_at(kTensorizerHeaderBytes, index), path);
  std::vector<TensorizerEntry> entries = TRY(parse_tensorizer_index(index, head), path);
  auto archive = std::make_unique<TensorizerFile>(std::move(file), path, head, std::move(entries), secret);
  TRY(archive->list(), path);
  return std::unique_ptr<TensorArchive>(std::move(archive));
}

}  // namespace holdfast::store
