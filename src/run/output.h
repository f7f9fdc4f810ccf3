// Ranks' output for people: whole lines, each with the rank it came from, and/or one file a rank and stream.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "run/options.h"
#include "world/disk.h"

namespace holdfast::run {

class Output {
 public:
  /// `options` and `disk` outlive this object.
  Output(const RunOptions& options, world::Disk& disk) : options_(options), disk_(disk) {}
  /// `who`: a rank, or a spare before it has one (kNoRank).
  void write(Rank who, int attempt, world::Stream stream, BytesView chunk);
  /// Prints what is left of lines without an end.
  void flush();

  static constexpr Rank kNoRank = ~Rank{0};
  static constexpr std::size_t kLineBytesMax = std::size_t{64} << 10;

 private:
  using Key = std::pair<Rank, world::Stream>;
  void print_lines(Key key, std::string_view text);
  void print_line(Key key, std::string_view line);
  void append_to_file(Rank rank, int attempt, world::Stream stream, BytesView chunk);

  const RunOptions& options_;
  world::Disk& disk_;
  std::map<Key, std::string> partial_;
  std::map<std::string, std::unique_ptr<world::WritableFile>> files_;
};

}  // namespace holdfast::run
