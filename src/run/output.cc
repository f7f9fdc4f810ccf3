#include "run/output.h"

#include "base/log.h"

namespace holdfast::run {

void Output::write(Rank who, int attempt, world::Stream stream, BytesView chunk) {
  const int bit = stream == world::Stream::Out ? 1 : 2;
  const bool redirected = who != kNoRank && (options_.redirects.of(who) & bit) != 0;
  const bool teed = who != kNoRank && (options_.tee.of(who) & bit) != 0;
  if (redirected || teed) append_to_file(who, attempt, stream, chunk);
  if (!redirected || teed) print_lines({who, stream}, as_text(chunk));
}

void Output::print_lines(Key key, std::string_view text) {
  std::string& partial = partial_[key];
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    partial += text.substr(0, end);
    if (end == std::string_view::npos && partial.size() < kLineBytesMax) return;
    print_line(key, partial);
    partial.clear();
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
}

void Output::print_line(Key key, std::string_view line) {
  std::string whole;
  if (options_.prefix) {
    whole = key.first == kNoRank ? "[spare] " : "[rank " + std::to_string(key.first) + "] ";
  }
  whole += line;
  whole += '\n';
  options_.print(key.second, whole);
}

void Output::append_to_file(Rank rank, int attempt, world::Stream stream, BytesView chunk) {
  const std::string dir = options_.log_dir + "/attempt_" + std::to_string(attempt) + "/" + std::to_string(rank);
  const std::string path = dir + (stream == world::Stream::Out ? "/stdout.log" : "/stderr.log");
  auto found = files_.find(path);
  if (found == files_.end()) {
    std::unique_ptr<world::WritableFile> file;
    if (disk_.make_dirs(dir)) {
      if (auto created = disk_.create(path)) file = *std::move(created);
    }
    if (!file) log_warn("cannot write " + path + "; output of rank " + std::to_string(rank) + " is lost");
    found = files_.emplace(path, std::move(file)).first;
  }
  if (found->second && !found->second->append(chunk)) {
    log_warn("cannot write " + path + "; output of rank " + std::to_string(rank) + " is lost");
    found->second.reset();
  }
}

void Output::flush() {
  for (auto& [key, partial] : partial_) {
    if (!partial.empty()) print_line(key, partial);
    partial.clear();
  }
}

}  // namespace holdfast::run
