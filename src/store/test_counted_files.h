// For tests: files in memory that count what is read of them.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "store/tensor_file.h"
#include "world/files.h"

namespace holdfast::store {

class CountedFiles final : public world::FileSource, public world::FileTarget {
 public:
  std::atomic<std::uint64_t> bytes_read = 0;

  Result<std::unique_ptr<world::ReadableFile>> open(const std::string& name) override {
    if (!files_.contains(name)) return Error(Code::NotFound, name);
    return std::unique_ptr<world::ReadableFile>(std::make_unique<File>(files_.at(name), bytes_read));
  }
  std::uint64_t piece_bytes(const std::string& /*name*/, std::uint64_t /*total*/) const override {
    return std::uint64_t{1} << 20U;
  }
  Result<std::unique_ptr<world::NewFile>> begin(const std::string& name, const std::string& /*aside*/,
                                                const world::Pieces& pieces) override {
    Bytes& bytes = files_[name];
    bytes.assign(pieces.total, std::byte{0});
    return std::unique_ptr<world::NewFile>(std::make_unique<Written>(bytes, pieces));
  }
  Bytes& content(const std::string& name) { return files_.at(name); }

 private:
  class File final : public world::ReadableFile {
   public:
    File(const Bytes& bytes, std::atomic<std::uint64_t>& count) : bytes_(bytes), count_(count) {}
    std::uint64_t size() const override { return bytes_.size(); }
    Status read_at(std::uint64_t offset, std::span<std::byte> out) override {
      if (offset + out.size() > bytes_.size()) return Error(Code::Corrupt, "ends before");
      std::memcpy(out.data(), bytes_.data() + offset, out.size());
      count_ += out.size();
      return Ok{};
    }

   private:
    const Bytes& bytes_;
    std::atomic<std::uint64_t>& count_;
  };
  class Written final : public world::NewFile {
   public:
    Written(Bytes& bytes, const world::Pieces& pieces) : bytes_(bytes), pieces_(pieces) {}
    Status write(std::uint64_t index, BytesView bytes) override {
      std::memcpy(bytes_.data() + pieces_.begin(index), bytes.data(), bytes.size());
      return Ok{};
    }
    Status commit() override { return Ok{}; }

   private:
    Bytes& bytes_;
    world::Pieces pieces_;
  };

  std::map<std::string, Bytes> files_;
};

/// Bytes that differ from place to place.
inline Bytes varied(std::size_t size, unsigned seed) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + seed * 31 + i / 253);
  return bytes;
}

}  // namespace holdfast::store
