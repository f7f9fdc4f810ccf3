#include "world/frame.h"

#include <algorithm>

#include "base/check.h"
#include "world/net.h"

namespace holdfast::world {
namespace {

constexpr std::string_view kMagic = "HFW1";
constexpr std::size_t kKeptCapacityMax = std::size_t{256} << 10;

template <typename Array>
void append(Bytes& out, const Array& bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

Mac frame_mac(Hmac& key, std::uint64_t sequence, std::uint32_t size, BytesView message) {
  ByteWriter header;
  header.put(sequence);
  header.put(size);
  const Bytes bytes = std::move(header).take();
  return key.of({bytes, message});
}

}  // namespace

Handshake::Handshake(Role role, const std::string& secret, const Nonce& nonce)
    : role_(role), secret_(as_bytes(secret)), ours_(nonce) {}

Bytes Handshake::hello() const {
  Bytes out;
  append(out, as_bytes(kMagic));
  append(out, ours_);
  return out;
}

Bytes Handshake::opening() const { return role_ == Role::Connector ? hello() : Bytes{}; }

Result<Bytes> Handshake::feed(BytesView& in) {
  CHECK(stage_ != Stage::Done);
  Bytes reply;
  while (stage_ != Stage::Done) {
    const std::size_t wanted = stage_ == Stage::Hello ? kHelloBytes : sizeof(Mac);
    const std::size_t taken = std::min(wanted - buffered_.size(), in.size());
    append(buffered_, in.first(taken));
    in = in.subspan(taken);
    // A stranger is told apart by its first bytes: it need not send the rest.
    const std::size_t magic = stage_ == Stage::Hello ? std::min(kMagic.size(), buffered_.size()) : 0;
    if (!std::equal(buffered_.begin(), buffered_.begin() + static_cast<std::ptrdiff_t>(magic),
                    as_bytes(kMagic).begin())) {
      return Error(Code::BadInput, "its first bytes are not a peer's of this version");
    }
    if (buffered_.size() < wanted) break;
    auto answer = stage_ == Stage::Hello ? take_hello() : take_proof();
    if (!answer) return answer;
    append(reply, *answer);
    buffered_.clear();
  }
  return reply;
}

Result<Bytes> Handshake::take_hello() {
  std::copy_n(buffered_.begin() + kMagic.size(), theirs_.size(), theirs_.begin());
  stage_ = Stage::Proof;
  if (role_ == Role::Listener) return hello();
  const Mac proof = derive("connector proof");
  return Bytes(proof.begin(), proof.end());
}

Result<Bytes> Handshake::take_proof() {
  const bool listener = role_ == Role::Listener;
  if (!same_secret(buffered_, derive(listener ? "connector proof" : "listener proof"))) {
    return Error(Code::Denied, "it does not know the run's secret");
  }
  stage_ = Stage::Done;
  if (!listener) return Bytes{};
  const Mac proof = derive("listener proof");
  return Bytes(proof.begin(), proof.end());
}

Mac Handshake::derive(std::string_view purpose) {
  const bool listener = role_ == Role::Listener;
  return secret_.of(
      {as_bytes("holdfast wire 1 "), as_bytes(purpose), listener ? theirs_ : ours_, listener ? ours_ : theirs_});
}

SessionKeys Handshake::keys() {
  CHECK(done());
  const Mac up = derive("to listener");
  const Mac down = derive("to connector");
  return role_ == Role::Connector ? SessionKeys{up, down} : SessionKeys{down, up};
}

void FrameWriter::append(Bytes& out, BytesView message) {
  CHECK(message.size() <= kMessageBytesMax);
  const auto size = static_cast<std::uint32_t>(message.size());
  const Mac mac = frame_mac(key_, sequence_++, size, message);
  ByteWriter header;
  header.put(size);
  world::append(out, std::move(header).take());
  world::append(out, BytesView(mac).first(kFrameMacBytes));
  world::append(out, message);
}

void FrameReader::feed(BytesView bytes) {
  if (broken_) return;
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(begin_));
  begin_ = 0;
  if (buffer_.empty() && buffer_.capacity() > kKeptCapacityMax) Bytes().swap(buffer_);
  append(buffer_, bytes);
}

Result<std::optional<BytesView>> FrameReader::next() {
  if (broken_) return Error(Code::Denied, "an earlier message was refused");
  const BytesView rest = BytesView(buffer_).subspan(begin_);
  ByteReader header(rest);
  const auto size = header.get<std::uint32_t>();
  if (!header.ok()) return std::optional<BytesView>();
  if (size > kMessageBytesMax) {
    broken_ = true;
    return Error(Code::BadInput, "a message of " + std::to_string(size) + " bytes is over the limit");
  }
  if (rest.size() < kFrameHeaderBytes + size) return std::optional<BytesView>();
  const BytesView message = rest.subspan(kFrameHeaderBytes, size);
  const Mac mac = frame_mac(key_, sequence_, size, message);
  if (!same_secret(rest.subspan(4, kFrameMacBytes), BytesView(mac).first(kFrameMacBytes))) {
    broken_ = true;
    return Error(Code::Denied, "a message is damaged or not from the peer");
  }
  ++sequence_;
  begin_ += kFrameHeaderBytes + size;
  return std::optional<BytesView>(message);
}

}  // namespace holdfast::world
