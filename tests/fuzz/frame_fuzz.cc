// Fuzzes what a stranger can send over the wire: any bytes, in any pieces, to a handshake and to a reader of messages.
#include <algorithm>

#include "base/check.h"
#include "world/frame.h"
#include "world/net.h"

using namespace holdfast;
using namespace holdfast::world;

namespace {

void greet(Role role, BytesView bytes, std::size_t piece) {
  Nonce nonce{};
  Handshake handshake(role, "a secret that the input can't know", nonce);
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    BytesView in = bytes.subspan(at, std::min(piece, bytes.size() - at));
    if (!handshake.feed(in)) return;
    CHECK(in.empty() && !handshake.done());
  }
}

/// Each message that comes out must be one that was written, in its place.
void read(BytesView bytes, std::size_t piece) {
  const Mac key{};
  FrameWriter writer(key);
  Bytes wire;
  writer.append(wire, bytes.first(std::min<std::size_t>(bytes.size(), 8)));
  const std::size_t sound = wire.size();
  wire.insert(wire.end(), bytes.begin(), bytes.end());
  FrameReader reader(key);
  std::size_t messages = 0;
  for (std::size_t at = 0; at < wire.size(); at += piece) {
    reader.feed(BytesView(wire).subspan(at, std::min(piece, wire.size() - at)));
    for (;;) {
      const auto message = reader.next();
      if (!message || !message->has_value()) break;
      CHECK((*message)->size() + kFrameHeaderBytes == sound);
      CHECK(++messages == 1);
    }
  }
  CHECK(messages == 1);
}

}  // namespace

/// First byte: the size of the pieces that the rest arrives in.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = data[0] + std::size_t{1};
  const BytesView bytes = std::as_bytes(std::span(data + 1, size - 1));
  greet(Role::Connector, bytes, piece);
  greet(Role::Listener, bytes, piece);
  read(bytes, piece);
  return 0;
}
