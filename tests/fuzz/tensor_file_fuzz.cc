// Any bytes as a tensor file: refused in bounded memory, or loaded whole and in parts alike.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "store/tensor_file.h"
#include "world/disk.h"

namespace {

using holdfast::Bytes;
using holdfast::BytesView;
using holdfast::Code;
using holdfast::Error;
using holdfast::Result;
using holdfast::Status;
namespace world = holdfast::world;

/// A disk with one file, under any name.
class OneFile final : public world::Disk {
 public:
  explicit OneFile(BytesView content) : content_(content) {}
  Result<std::unique_ptr<world::ReadableFile>> open(const std::string& /*path*/) override {
    return std::unique_ptr<world::ReadableFile>(std::make_unique<File>(content_));
  }
  Result<std::unique_ptr<world::WritableFile>> create(const std::string& path) override { return denied(path); }
  Status rename(const std::string& from, const std::string& /*to*/) override { return denied(from); }
  Status remove(const std::string& path) override { return denied(path); }
  Status make_dirs(const std::string& path) override { return denied(path); }
  Status sync_dir(const std::string& path) override { return denied(path); }
  Result<std::vector<std::string>> list(const std::string& path) override { return denied(path); }
  bool exists(const std::string& /*path*/) override { return true; }

 private:
  class File final : public world::ReadableFile {
   public:
    explicit File(BytesView content) : content_(content) {}
    std::uint64_t size() const override { return content_.size(); }
    Status read_at(std::uint64_t offset, std::span<std::byte> out) override {
      if (offset > content_.size() || out.size() > content_.size() - offset) return Error(Code::Corrupt, "short");
      if (!out.empty()) std::memcpy(out.data(), content_.data() + offset, out.size());
      return holdfast::Ok{};
    }

   private:
    BytesView content_;
  };

  static Error denied(const std::string& path) { return {Code::Denied, path}; }
  BytesView content_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  OneFile disk(std::as_bytes(std::span(data, size)));
  const auto verified = holdfast::store::verify_tensor_file(disk, "/f", 1);
  const auto loaded = holdfast::store::load_tensor_file(disk, "/f", std::nullopt, 1);
  CHECK(static_cast<bool>(verified) == static_cast<bool>(loaded));
  if (!loaded) {
    CHECK(verified.error().message() == loaded.error().message());
    return 0;
  }
  CHECK(loaded->block.all().size() <= size);
  for (const auto& tensor : loaded->tensors) {
    const auto alone = holdfast::store::load_tensor_file(disk, "/f", {{tensor.name}}, 1);
    CHECK(alone && alone->tensors.size() == 1);
    const BytesView here = loaded->block.all().subspan(tensor.begin, tensor.end - tensor.begin);
    const BytesView there = alone->block.all().first(alone->tensors[0].end);
    CHECK(std::equal(here.begin(), here.end(), there.begin(), there.end()));
  }
  return 0;
}
