// S10, S11, S21 for zip files.
#include "store/zip_file.h"

#include <gtest/gtest.h>

#include "sim/sim_world.h"
#include "store/crc32.h"
#include "store/torch_dtype.h"
#include "store/torch_item.h"
#include "world/disk.h"

namespace holdfast::store {
namespace {

/// A zip file by hand: what is wrong with it, each test chooses.
struct Part {
  std::string name;
  std::string data;
  std::uint16_t method = 0;
  std::uint16_t flags = 0;
  std::optional<std::uint32_t> crc = std::nullopt;
  std::string own_name = "";                           ///< in its own header; empty: the same
  std::optional<std::uint32_t> header = std::nullopt;  ///< where the directory says that it is
};

Bytes zip_of(const std::vector<Part>& parts, int counted = -1) {
  Bytes out;
  const auto put = [&](ByteWriter writer) {
    const Bytes bytes = std::move(writer).take();
    out.insert(out.end(), bytes.begin(), bytes.end());
  };
  const auto fields = [](ByteWriter& writer, const Part& part, const std::string& name) {
    writer.put(std::uint16_t{20});
    writer.put(part.flags);
    writer.put(part.method);
    writer.put(std::uint32_t{0});
    writer.put(part.crc.value_or(crc32(as_bytes(part.data))));
    for (int i = 0; i < 2; ++i) writer.put(static_cast<std::uint32_t>(part.data.size()));
    writer.put(static_cast<std::uint16_t>(name.size()));
    writer.put(std::uint16_t{0});
  };
  std::vector<std::uint32_t> headers;
  for (const Part& part : parts) {
    headers.push_back(static_cast<std::uint32_t>(out.size()));
    const std::string& name = part.own_name.empty() ? part.name : part.own_name;
    ByteWriter writer;
    writer.put(std::uint32_t{0x04034B50});
    fields(writer, part, name);
    writer.put_bytes(as_bytes(name));
    writer.put_bytes(as_bytes(part.data));
    put(std::move(writer));
  }
  const std::size_t directory = out.size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    ByteWriter writer;
    writer.put(std::uint32_t{0x02014B50});
    writer.put(std::uint16_t{20});
    fields(writer, parts[i], parts[i].name);
    for (int zeros = 0; zeros < 5; ++zeros) writer.put(std::uint16_t{0});
    writer.put(parts[i].header.value_or(headers[i]));
    writer.put_bytes(as_bytes(parts[i].name));
    put(std::move(writer));
  }
  ByteWriter end;
  end.put(std::uint32_t{0x06054B50});
  end.put(std::uint32_t{0});
  const std::size_t directory_bytes = out.size() - directory;
  for (int i = 0; i < 2; ++i) end.put(static_cast<std::uint16_t>(counted < 0 ? parts.size() : counted));
  end.put(static_cast<std::uint32_t>(directory_bytes));
  end.put(static_cast<std::uint32_t>(directory));
  end.put(std::uint16_t{0});
  put(std::move(end));
  return out;
}

class ZipFileTest : public testing::Test {
 protected:
  /// The file is kept open by the test.
  Result<ZipFile> open(BytesView bytes, std::uint64_t begin = 0) {
    EXPECT_TRUE(world_.disk().make_dirs("/d"));
    EXPECT_TRUE(write_file_atomically(world_.disk(), "/d/z", bytes));
    auto file = world_.disk().open("/d/z");
    EXPECT_TRUE(file);
    file_ = *std::move(file);
    return ZipFile::open({file_.get(), begin, bytes.size() - begin});
  }
  std::string why(const Bytes& bytes) {
    const auto zip = open(bytes);
    return zip ? "" : zip.error().message();
  }

  sim::SimWorld world_{1};
  std::unique_ptr<world::ReadableFile> file_;
};

TEST_F(ZipFileTest, GivesItsEntries) {
  const auto zip = open(zip_of({{"a/x", "hello"}, {"a/none", ""}, {"b", std::string(3000, 'y')}}));
  ASSERT_TRUE(zip) << zip.error().message();
  EXPECT_EQ(zip->entries().size(), 3u);
  const auto bytes = zip->read("a/x", 100);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(as_text(*bytes), "hello");
  EXPECT_TRUE(zip->read("a/none", 0));
  EXPECT_FALSE(zip->read("b", 2999));
  EXPECT_FALSE(zip->read("c", 100));
  Bytes part(4);
  ASSERT_TRUE(zip->read_checked(*zip->find("a/x"), 1, part));
  EXPECT_EQ(as_text(part), "ello");
}

TEST_F(ZipFileTest, AFlippedBitIsToldWhicheverPartIsRead) {
  const auto zip = open(zip_of({{"x", "hello", 0, 0, 1234}}));
  ASSERT_TRUE(zip);
  EXPECT_FALSE(zip->read("x", 100));
  Bytes part(1);
  const Status read = zip->read_checked(*zip->find("x"), 0, part);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message().find("bytes 31 to 36 do not match their checksum"), std::string::npos);
}

TEST_F(ZipFileTest, WhatTwoReadersCouldSeeDifferentlyIsRefused) {
  EXPECT_NE(why(zip_of({{"x", "1"}, {"x", "2"}})).find("two entries x"), std::string::npos);
  EXPECT_NE(why(zip_of({{"x", "1"}, {"y", "22", 0, 0, std::nullopt, "", 0}})).find("not what its own header says"),
            std::string::npos);
  EXPECT_NE(why(zip_of({{"x", "11"}, {"x", "11", 0, 0, std::nullopt, "", 0}})).find("overlaps"), std::string::npos);
  EXPECT_NE(why(zip_of({{"x", "1", 0, 0, std::nullopt, "y"}})).find("its own header"), std::string::npos);
  EXPECT_NE(why(zip_of({{"x", "1", 0, 0, std::nullopt, "", 9'999}})).find("outside"), std::string::npos);
  EXPECT_NE(why(zip_of({{"x", "1"}, {"y", "2"}}, 1)).find("more than its entries"), std::string::npos);
  EXPECT_NE(why(zip_of({{"x", "1"}}, 2)).find("can't hold 2 entries"), std::string::npos);
}

TEST_F(ZipFileTest, CompressedAndEncryptedEntriesAreRefused) {
  EXPECT_NE(why(zip_of({{"x", "1", 8}})).find("compressed"), std::string::npos);
  EXPECT_NE(why(zip_of({{"x", "1", 0, 1}})).find("encrypted"), std::string::npos);
}

TEST_F(ZipFileTest, CutOffAnywhereOrFollowedByMoreIsRefused) {
  const Bytes whole = zip_of({{"x", "1"}, {"y", "22"}});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(why(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))), "") << size;
  }
  Bytes more = whole;
  more.push_back(std::byte{0});
  EXPECT_NE(why(more), "");
}

TEST_F(ZipFileTest, A64BitOneWithinAFileIsRead) {
  const TorchItem item(*torch_dtype("int64"), std::vector<std::uint64_t>{1});
  Bytes bytes(7, std::byte{'.'});
  const std::string data = "12345678";
  const Bytes tail = item.tail(crc32(as_bytes(data)));
  for (const BytesView part : {item.head(), as_bytes(data), BytesView(tail)})
    bytes.insert(bytes.end(), part.begin(), part.end());
  EXPECT_EQ(bytes.size(), 7 + item.bytes());
  EXPECT_EQ(item.head().size() % 64, 0u);
  const auto zip = open(bytes, 7);
  ASSERT_TRUE(zip) << zip.error().message();
  const auto read = zip->read("data/data/0", 8);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(as_text(*read), data);
}

}  // namespace
}  // namespace holdfast::store
