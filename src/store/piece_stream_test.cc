#include "store/piece_stream.h"

#include <gtest/gtest.h>

namespace holdfast::store {
namespace {

/// Remembers its pieces.
class PiecesSeen final : public world::NewFile {
 public:
  Status write(std::uint64_t index, BytesView bytes) override {
    EXPECT_EQ(index, seen.size());
    seen.emplace_back(as_text(bytes));
    return Ok{};
  }
  Status commit() override { return Ok{}; }
  std::vector<std::string> seen;
};

std::vector<std::string> cut(const std::vector<std::string>& parts, std::uint64_t piece, std::uint64_t head = 0) {
  PiecesSeen file;
  std::uint64_t total = 0;
  for (const std::string& part : parts) total += part.size();
  PieceStream stream(file, {.head = head, .piece = piece, .total = total});
  for (const std::string& part : parts) EXPECT_TRUE(stream.append(as_bytes(part)));
  EXPECT_TRUE(stream.finish());
  return file.seen;
}

using Texts = std::vector<std::string>;

TEST(PieceStream, CutsWhatIsAppendedIntoPieces) {
  EXPECT_EQ(cut({"ab", "cdefgh", "", "i"}, 4), (Texts{"abcd", "efgh", "i"}));
  EXPECT_EQ(cut({"abcdefgh"}, 4), (Texts{"abcd", "efgh"}));
  EXPECT_EQ(cut({"abcdefgh"}, 3, 2), (Texts{"abcde", "fgh"}));
  EXPECT_EQ(cut({"ab"}, 4), Texts{"ab"});
  EXPECT_EQ(cut({}, 4), Texts{""});
}

}  // namespace
}  // namespace holdfast::store
