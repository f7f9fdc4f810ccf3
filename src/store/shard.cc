#include "store/shard.h"

#include "base/check.h"

namespace holdfast::store {
namespace {

Error damaged(const std::string& what) {
  return {Code::Corrupt, what + "; restore the file from a copy or resume from an older checkpoint"};
}

/// Opens the file by `read`, once it has the size that the manifest promises.
template <typename Read>
auto read_as_promised(world::FileSource& files, const std::string& path, const ShardRecord& record, Read read)
    -> decltype(read()) {
  auto file = files.open(path);
  if (!file) return std::move(file).error();
  if ((*file)->size() != record.bytes) {
    return damaged("the file has " + std::to_string((*file)->size()) + " bytes, its manifest says " +
                   std::to_string(record.bytes))
        .in(path);
  }
  auto outcome = read();
  // A manifest names it: what is no tensor file now was one when it was committed.
  if (!outcome && outcome.error().code() == Code::BadInput) return damaged(outcome.error().message());
  return outcome;
}

/// That `file` is the one the manifest means, not merely a whole one.
Status check_record(const TensorFile& file, const ShardRecord& record) {
  if (!file.checksums) return damaged("the file has lost its checksums");
  if (file.header_crc != record.header_crc) return damaged("the file is not the one that its manifest names");
  return Ok{};
}

}  // namespace

ShardRecord of_older(const KeptFile& kept) { return {kept.file, kept.bytes, kept.header_crc}; }

std::string shard_file_name(Rank writer, std::uint32_t writers) {
  return "shard-" + std::to_string(writer) + "-of-" + std::to_string(writers) + ".safetensors";
}

Result<ShardRecord> write_shard(world::FileTree& files, const std::string& dir, Rank writer, std::uint32_t writers,
                                std::span<const TensorData> tensors,
                                const std::map<std::string, std::string>& metadata) {
  CHECK(writer < writers && writers <= kShardsMax);
  const std::string file = shard_file_name(writer, writers);
  TRY(files.make_dirs(dir), "write " + file);
  const SavedTensorFile saved =
      TRY(save_tensor_file(files, dir + "/" + file, tensors, metadata, files.threads()), "checkpoint");
  return ShardRecord{file, saved.bytes, saved.header_crc, {}};
}

Result<OpenTensorFile> open_shard(world::FileSource& files, const std::string& dir, const ShardRecord& record) {
  const std::string path = dir + "/" + record.file;
  const auto open = [&] { return OpenTensorFile::open(files, path); };
  OpenTensorFile file = TRY(read_as_promised(files, path, record, open), "read a shard");
  TRY(check_record(file.about(), record), path);
  return file;
}

Status verify_shard(world::FileSource& files, const std::string& dir, const ShardRecord& record, unsigned threads) {
  const std::string path = dir + "/" + record.file;
  const auto verify = [&] { return verify_tensor_file(files, path, threads); };
  const TensorFile file = TRY(read_as_promised(files, path, record, verify), "verify");
  TRY(check_record(file, record), path);
  return Ok{};
}

Result<LoadedTensors> load_shard(world::FileSource& files, const std::string& dir, const ShardRecord& record,
                                 unsigned threads) {
  const std::string path = dir + "/" + record.file;
  const auto load = [&] { return load_tensor_file(files, path, std::nullopt, threads); };
  LoadedTensors loaded = TRY(read_as_promised(files, path, record, load), "load");
  TRY(check_record(loaded.file, record), path);
  return loaded;
}

}  // namespace holdfast::store
