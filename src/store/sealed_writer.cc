// Writing a sealed file from the pieces of a plain one, in any order and by several threads. The pieces themselves are
// only read: what is encrypted is a copy.
#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/check.h"
#include "base/crc32c.h"
#include "store/aligned_bytes.h"
#include "store/compression.h"
#include "store/sealed_file.h"
#include "store/sealed_head.h"
#include "store/sealed_layout.h"

namespace holdfast::store {
namespace {

/// A chunk that shrinks by less than a thirty-second is kept as it is: reading it back is then free.
constexpr std::uint64_t kWorthwhile = 32;

struct SealerKeys {
  std::optional<DataKey> data_key;
  int level = 0;
};

/// What one thread needs to seal chunks.
struct Sealer {
  explicit Sealer(const SealerKeys& keys) {
    if (keys.data_key) cipher.emplace(keys.data_key->bytes, SealCipher::Use::Encrypt);
    if (keys.level > 0) compressor.emplace(keys.level);
  }
  std::optional<SealCipher> cipher;
  std::optional<Compressor> compressor;
};

/// The chunks of a plain file, by its pieces.
struct ChunkPlan {
  world::Pieces pieces;

  static std::uint64_t chunks_of(std::uint64_t bytes) {
    return bytes / kSealedChunkBytes + (bytes % kSealedChunkBytes == 0 ? 0 : 1);
  }
  std::uint64_t header_chunks() const { return chunks_of(pieces.head); }
  std::uint64_t count() const { return header_chunks() + chunks_of(pieces.total - pieces.head); }
  std::uint64_t begin(std::uint64_t chunk) const {
    return chunk < header_chunks() ? chunk * kSealedChunkBytes
                                   : pieces.head + (chunk - header_chunks()) * kSealedChunkBytes;
  }
  std::uint64_t end(std::uint64_t chunk) const { return chunk + 1 == count() ? pieces.total : begin(chunk + 1); }
  /// The first chunk of a piece; of one behind the last, the count.
  std::uint64_t first_of(std::uint64_t piece) const {
    return piece == 0 ? 0 : std::min(count(), header_chunks() + piece * (pieces.piece / kSealedChunkBytes));
  }
};

/// What both ways of writing have in common: chunks are sealed, and their places noted for the table.
class SealingFile : public world::NewFile {
 public:
  SealingFile(SealedHead head, SealerKeys keys, const ChunkPlan& plan)
      : head_(std::move(head)), keys_(std::move(keys)), plan_(plan) {}
  ~SealingFile() override = default;
  SealingFile(const SealingFile&) = delete;
  SealingFile& operator=(const SealingFile&) = delete;

 protected:
  std::uint64_t head_bytes() const { return sealed_head_bytes(plan_.count()); }
  const ChunkPlan& plan() const { return plan_; }
  SealedHead& head() { return head_; }
  SealedChunk& chunk(std::uint64_t index) { return head_.chunks[index]; }

  /// The chunk's tag, for the stored bytes in place at `out`. Its sizes are known.
  void encrypt(std::uint64_t index, BytesView bytes, std::span<std::byte> out, Sealer& sealer) {
    SealedChunk& entry = chunk(index);
    entry.stored = static_cast<std::uint32_t>(bytes.size());
    if (sealer.cipher) {
      entry.tag = sealer.cipher->encrypt({kChunkNonce, index}, head_.about(index), bytes, out);
      return;
    }
    entry.tag = checksum_tag(crc32c(bytes));
    if (out.data() != bytes.data()) std::memcpy(out.data(), bytes.data(), bytes.size());
  }

  Status write_head(world::NewFile& file, BytesView first) {
    Bytes bytes = format_sealed_head(head_, keys_.data_key);
    AlignedBytes piece(bytes.size() + first.size());
    std::copy(bytes.begin(), bytes.end(), piece.all().begin());
    std::copy(first.begin(), first.end(), piece.all().begin() + static_cast<std::ptrdiff_t>(bytes.size()));
    return file.write(0, piece.all());
  }

  std::unique_ptr<Sealer> take_sealer() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<Sealer> sealer = std::move(idle_.back());
        idle_.pop_back();
        return sealer;
      }
    }
    return std::make_unique<Sealer>(keys_);
  }
  void give_back(std::unique_ptr<Sealer> sealer) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(sealer));
  }

 private:
  SealedHead head_;
  SealerKeys keys_;
  ChunkPlan plan_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Sealer>> idle_;
};

/// Nothing changes its size: each piece is encrypted and goes where it was.
class EncryptedFile final : public SealingFile {
 public:
  using SealingFile::SealingFile;

  Status begin(world::FileTarget& files, const std::string& name, const std::string& aside) {
    world::Pieces outer = plan().pieces;
    outer.head += head_bytes();
    outer.total += head_bytes();
    file_ = TRY(files.begin(name, aside, outer), "begin");
    head().stored_bytes = head().plain_bytes;
    return Ok{};
  }

  Status write(std::uint64_t index, BytesView bytes) override {
    AlignedBytes sealed(bytes.size());
    std::unique_ptr<Sealer> sealer = take_sealer();
    const std::uint64_t first = plan().first_of(index);
    for (std::uint64_t i = first; i < plan().first_of(index + 1); ++i) {
      const std::uint64_t at = plan().begin(i) - plan().begin(first);
      chunk(i).at = plan().begin(i);
      encrypt(i, bytes.subspan(at, chunk(i).plain), sealed.all().subspan(at, chunk(i).plain), *sealer);
    }
    give_back(std::move(sealer));
    if (index > 0) return file_->write(index, sealed.all());
    first_ = std::move(sealed);
    return Ok{};
  }

  Status commit() override {
    TRY(write_head(*file_, first_.all()), "write the head");
    return file_->commit();
  }

 private:
  std::unique_ptr<world::NewFile> file_;
  AlignedBytes first_{0};  ///< kept until the table before it is known
};

/// Chunks shrink by what nobody knows before, so they are stored as they come, and pieces are cut from that stream.
class CompressedFile final : public SealingFile {
 public:
  using SealingFile::SealingFile;

  Status begin(world::FileTarget& files, const std::string& name, const std::string& aside) {
    pieces_ = {.head = head_bytes(),
               .piece = files.piece_bytes(name, head_bytes() + plan().pieces.total),
               .total = head_bytes() + plan().pieces.total,
               .total_is_most = true};
    file_ = TRY(files.begin(name, aside, pieces_), "begin");
    return Ok{};
  }

  Status write(std::uint64_t index, BytesView bytes) override {
    AlignedBytes room(kSealedChunkBytes);
    std::unique_ptr<Sealer> sealer = take_sealer();
    const std::uint64_t first = plan().first_of(index);
    for (std::uint64_t i = first; i < plan().first_of(index + 1); ++i) {
      const BytesView plain = bytes.subspan(plan().begin(i) - plan().begin(first), chunk(i).plain);
      const std::size_t worthwhile = plain.size() - plain.size() / kWorthwhile - 1;
      const std::size_t size = sealer->compressor->compress(plain, room.all().first(worthwhile));
      const std::span<std::byte> stored = room.all().first(size > 0 ? size : plain.size());
      encrypt(i, size > 0 ? BytesView(stored) : plain, stored, *sealer);
      if (Status done = append(i, stored); !done) return done;
    }
    give_back(std::move(sealer));
    return Ok{};
  }

  Status commit() override {
    head().stored_bytes = stored_;
    if (filled_ > 0 && piece_ > 0) TRY(file_->write(piece_, current_.all().first(filled_)), "write the last piece");
    const BytesView first = piece_ > 0 ? first_.all() : BytesView(current_.all()).first(filled_);
    TRY(write_head(*file_, first), "write the head");
    return file_->commit();
  }

 private:
  struct Full {
    std::uint64_t piece;
    AlignedBytes bytes;
  };

  Status append(std::uint64_t index, BytesView stored) {
    std::vector<Full> full;
    {
      const std::lock_guard lock(stream_);
      chunk(index).at = stored_;
      stored_ += stored.size();
      while (!stored.empty()) {
        if (current_.all().empty()) current_ = AlignedBytes(pieces_.piece);
        const std::size_t size = std::min(stored.size(), current_.all().size() - filled_);
        std::memcpy(current_.all().data() + filled_, stored.data(), size);
        stored = stored.subspan(size);
        filled_ += size;
        if (filled_ == current_.all().size()) take_full(full);
      }
    }
    for (Full& each : full) {
      if (Status done = file_->write(each.piece, each.bytes.all()); !done) return done;
    }
    return Ok{};
  }

  void take_full(std::vector<Full>& full) {
    AlignedBytes done(0);
    std::swap(done, current_);
    if (piece_ == 0) {
      first_ = std::move(done);
    } else {
      full.push_back({piece_, std::move(done)});
    }
    ++piece_;
    filled_ = 0;
  }

  world::Pieces pieces_;
  std::unique_ptr<world::NewFile> file_;
  std::mutex stream_;        ///< guards all below, and the places of chunks
  AlignedBytes first_{0};    ///< kept until the table before it is known
  AlignedBytes current_{0};  ///< being filled; of the piece `piece_`
  std::uint64_t piece_ = 0;
  std::size_t filled_ = 0;
  std::uint64_t stored_ = 0;
};

template <typename File>
Result<std::unique_ptr<world::NewFile>> begun(std::unique_ptr<File> file, world::FileTarget& files,
                                              const std::string& name, const std::string& aside) {
  TRY(file->begin(files, name, aside), "seal");
  return std::unique_ptr<world::NewFile>(std::move(file));
}

}  // namespace

Result<std::unique_ptr<world::NewFile>> SealedFiles::begin(const std::string& name, const std::string& aside,
                                                           const world::Pieces& pieces) {
  if (!how_.any()) return files_.begin(name, aside, pieces);
  CHECK(pieces.piece % kSealedChunkBytes == 0 && !pieces.total_is_most && pieces.head <= pieces.total);
  const ChunkPlan plan{pieces};
  if (plan.count() == 0 || plan.count() > kSealedChunksMax) {
    return Error(Code::BadInput, name + ": " + std::to_string(pieces.total) + " bytes can't be sealed in one file");
  }
  SealedHead head;
  head.encrypted = how_.key.has_value();
  head.compressed = how_.level > 0;
  head.plain_bytes = pieces.total;
  head.chunks.resize(plan.count());
  for (std::uint64_t i = 0; i < plan.count(); ++i) {
    head.chunks[i].plain = static_cast<std::uint32_t>(plan.end(i) - plan.begin(i));
  }
  fill_random(head.file_id, random_);
  SealerKeys keys{.data_key = std::nullopt, .level = how_.level};
  if (how_.key) {
    fill_random(keys.data_key.emplace().bytes, random_);
    head.slots[0] = wrap_key(*keys.data_key, *how_.key, head, random_);
  }
  if (how_.level == 0) {
    return begun(std::make_unique<EncryptedFile>(std::move(head), std::move(keys), plan), files_, name, aside);
  }
  return begun(std::make_unique<CompressedFile>(std::move(head), std::move(keys), plan), files_, name, aside);
}

}  // namespace holdfast::store
