// Reading a sealed file as the plain one: chunks that are wanted whole are read to where they belong and decrypted
// there, while they are in cache; the others go through a bounded memory.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "base/crc32c.h"
#include "store/aligned_bytes.h"
#include "store/compression.h"
#include "store/sealed_file.h"
#include "store/sealed_head.h"
#include "store/sealed_layout.h"

namespace holdfast::store {
namespace {

constexpr std::uint64_t kScratchBytesMax = std::uint64_t{16} << 20U;

/// What one thread needs to open chunks. The key is set once.
struct Opener {
  explicit Opener(const std::optional<DataKey>& key) {
    if (key) cipher.emplace(key->bytes, SealCipher::Use::Decrypt);
  }
  std::span<std::byte> room(std::size_t size) {
    if (!plain) plain.emplace(kSealedChunkBytes);
    return plain->all().first(size);
  }

  std::optional<SealCipher> cipher;
  Decompressor decompressor;
  std::optional<AlignedBytes> plain;
};

class SealedFile final : public world::ReadableFile {
 public:
  SealedFile(std::unique_ptr<world::ReadableFile> file, SealedHead head, const std::optional<DataKey>& key)
      : file_(std::move(file)), head_(std::move(head)), key_(key) {
    std::uint64_t begin = 0;
    for (const SealedChunk& chunk : head_.chunks) {
      begins_.push_back(begin);
      begin += chunk.plain;
    }
  }

  std::uint64_t size() const override { return head_.plain_bytes; }
  bool checked() const override { return true; }

  Status read_at(std::uint64_t offset, std::span<std::byte> out) override {
    const world::BlockRead block{offset, out};
    return read_blocks({&block, 1}, 1, [](std::size_t) { return Status(Ok{}); });
  }

  Status read_blocks(std::span<const world::BlockRead> blocks, unsigned threads,
                     const std::function<Status(std::size_t)>& arrived) override {
    std::vector<std::atomic<std::uint32_t>> missing(blocks.size());
    std::vector<Task> tasks;
    for (std::size_t i = 0; i < blocks.size(); ++i) TRY(add_tasks(blocks[i], i, tasks, missing[i]), "read");
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i].into.empty()) TRY(arrived(i), "read");
    }
    const auto opened = [&](const Task& task) {
      return --missing[task.block] == 0 ? arrived(task.block) : Status(Ok{});
    };
    for (std::size_t begin = 0; begin < tasks.size();) {
      std::uint64_t scratch = 0;
      std::size_t end = begin;
      for (; end < tasks.size() && scratch < kScratchBytesMax; ++end) scratch += scratch_bytes(tasks[end]);
      if (Status done = run(std::span(tasks).subspan(begin, end - begin), scratch, threads, opened); !done) return done;
      begin = end;
    }
    return Ok{};
  }

 private:
  /// Of one chunk, what one block wants.
  struct Task {
    std::size_t block = 0;
    std::uint64_t chunk = 0;
    std::uint64_t skip = 0;  ///< bytes of the chunk before
    std::span<std::byte> out;
  };

  Status add_tasks(const world::BlockRead& block, std::size_t index, std::vector<Task>& tasks,
                   std::atomic<std::uint32_t>& missing) const {
    if (block.offset > size() || block.into.size() > size() - block.offset) {
      return Error(Code::Corrupt, "the sealed file ends before byte " +
                                      std::to_string(block.offset + block.into.size()) + " of what it holds");
    }
    std::uint64_t done = 0;
    while (done < block.into.size()) {
      const std::uint64_t at = block.offset + done;
      const auto after = std::upper_bound(begins_.begin(), begins_.end(), at);
      const auto chunk = static_cast<std::uint64_t>(after - begins_.begin()) - 1;
      const std::uint64_t skip = at - begins_[chunk];
      const std::uint64_t size = std::min(head_.chunks[chunk].plain - skip, block.into.size() - done);
      tasks.push_back({index, chunk, skip, block.into.subspan(done, size)});
      done += size;
      ++missing;
    }
    return Ok{};
  }

  bool whole(const Task& task) const { return task.out.size() == head_.chunks[task.chunk].plain; }
  bool in_place(const Task& task) const { return whole(task) && !head_.chunks[task.chunk].compressed(); }
  std::uint64_t scratch_bytes(const Task& task) const { return in_place(task) ? 0 : head_.chunks[task.chunk].stored; }

  Status run(std::span<const Task> tasks, std::uint64_t scratch_size, unsigned threads,
             const std::function<Status(const Task&)>& opened) {
    AlignedBytes scratch(scratch_size);
    std::vector<world::BlockRead> reads;
    std::uint64_t used = 0;
    for (const Task& task : tasks) {
      std::span<std::byte> into = task.out;
      if (!in_place(task)) {
        into = scratch.all().subspan(used, head_.chunks[task.chunk].stored);
        used += into.size();
      }
      reads.push_back({head_.data_begin + head_.chunks[task.chunk].at, into});
    }
    return file_->read_blocks(reads, threads, [&](std::size_t i) {
      std::unique_ptr<Opener> opener = take_opener();
      Status done = open_chunk(tasks[i], reads[i].into, *opener);
      give_back(std::move(opener));
      return done ? opened(tasks[i]) : done;
    });
  }

  /// `stored` may be the task's `out` itself.
  Status open_chunk(const Task& task, std::span<std::byte> stored, Opener& opener) const {
    const SealedChunk& chunk = head_.chunks[task.chunk];
    const bool good = opener.cipher ? opener.cipher->decrypt({kChunkNonce, task.chunk}, head_.about(task.chunk), stored,
                                                             chunk.tag, stored)
                                    : checksum_tag(crc32c(stored)) == chunk.tag;
    if (!good) return damaged(task.chunk, opener.cipher ? "tag" : "checksum");
    if (in_place(task)) return Ok{};
    BytesView plain = stored;
    if (chunk.compressed()) {
      const std::span<std::byte> room = whole(task) ? task.out : opener.room(chunk.plain);
      if (!opener.decompressor.decompress(stored, room)) return damaged(task.chunk, "size when decompressed");
      if (whole(task)) return Ok{};
      plain = room;
    }
    std::memcpy(task.out.data(), plain.data() + task.skip, task.out.size());
    return Ok{};
  }

  Error damaged(std::uint64_t chunk, const std::string& what) const {
    const std::uint64_t at = head_.data_begin + head_.chunks[chunk].at;
    return {Code::Corrupt, "sealed chunk " + std::to_string(chunk) + " (bytes " + std::to_string(at) + " to " +
                               std::to_string(at + head_.chunks[chunk].stored) + ") does not match its " + what +
                               ": damaged or changed by others; restore the file from a copy"};
  }

  std::unique_ptr<Opener> take_opener() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<Opener> opener = std::move(idle_.back());
        idle_.pop_back();
        return opener;
      }
    }
    return std::make_unique<Opener>(key_);
  }

  void give_back(std::unique_ptr<Opener> opener) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(opener));
  }

  std::unique_ptr<world::ReadableFile> file_;
  SealedHead head_;
  std::optional<DataKey> key_;
  std::vector<std::uint64_t> begins_;  ///< of the chunks, in the plain file
  std::mutex mutex_;
  std::vector<std::unique_ptr<Opener>> idle_;
};

Result<std::unique_ptr<world::ReadableFile>> unseal(std::unique_ptr<world::ReadableFile> file,
                                                    const std::optional<SealKey>& key) {
  const std::optional<SealedHeadReader> reader = TRY(SealedHeadReader::open(*file), "open");
  if (key && (!reader || !reader->head().encrypted)) {
    return Error(Code::BadInput,
                 "is not encrypted, though a key was given: anybody could have written it; read it "
                 "without a key if that is right");
  }
  if (!reader) return file;
  const std::optional<DataKey> data_key = TRY(reader->data_key(key), "open");
  SealedHead head = TRY(reader->read(*file, data_key), "open");
  return std::unique_ptr<world::ReadableFile>(std::make_unique<SealedFile>(std::move(file), std::move(head), data_key));
}

}  // namespace

Result<std::unique_ptr<world::ReadableFile>> UnsealedFiles::open(const std::string& name) {
  auto file = files_.open(name);
  if (!file) return file;
  return TRY(unseal(*std::move(file), key_), name);
}

Result<std::optional<SealedAbout>> read_sealed_about(world::FileSource& files, const std::string& path) {
  const std::unique_ptr<world::ReadableFile> file = TRY(files.open(path), "open");
  const std::optional<SealedHeadReader> reader = TRY(SealedHeadReader::open(*file), path);
  if (!reader) return std::optional<SealedAbout>();
  const SealedHead& head = reader->head();
  SealedAbout about{
      .encrypted = head.encrypted, .compressed = head.compressed, .keys = {}, .plain_bytes = head.plain_bytes};
  for (const std::optional<KeySlot>& slot : head.slots) {
    if (slot) about.keys.push_back(key_id_text(slot->key_id));
  }
  return std::optional(std::move(about));
}

}  // namespace holdfast::store
