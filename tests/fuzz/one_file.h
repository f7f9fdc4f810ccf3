// A place with one file in it, under any name.
#pragma once

#include <cstring>
#include <memory>
#include <string>

#include "world/files.h"

namespace holdfast::fuzz {

class OneFile final : public world::FileSource {
 public:
  explicit OneFile(BytesView content) : content_(content) {}
  Result<std::unique_ptr<world::ReadableFile>> open(const std::string& /*name*/) override {
    return std::unique_ptr<world::ReadableFile>(std::make_unique<File>(content_));
  }

 private:
  class File final : public world::ReadableFile {
   public:
    explicit File(BytesView content) : content_(content) {}
    std::uint64_t size() const override { return content_.size(); }
    Status read_at(std::uint64_t offset, std::span<std::byte> out) override {
      if (offset > content_.size() || out.size() > content_.size() - offset) return Error(Code::Corrupt, "short");
      if (!out.empty()) std::memcpy(out.data(), content_.data() + offset, out.size());
      return Ok{};
    }

   private:
    BytesView content_;
  };
  BytesView content_;
};

}  // namespace holdfast::fuzz
