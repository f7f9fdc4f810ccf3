#include "app/tensors_convert_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "run/coordinator.h"
#include "store/archive.h"
#include "store/convert.h"
#include "store/shown.h"
#include "world/real_world.h"

namespace holdfast::app {
namespace {

constexpr std::uint64_t kKeyBytesMax = std::uint64_t{1} << 20U;
constexpr std::uint64_t kMegabyte = 1'000'000;
constexpr int kOthersShown = 5;

struct Wanted {
  std::string from;
  std::string to;
  std::string kind = "safetensors";
  std::string key_file;
  bool as_json = false;
};

std::string absolute(const std::string& path) {
  std::string whole = std::filesystem::absolute(path).lexically_normal().string();
  if (whole.size() > 1 && whole.back() == '/') whole.pop_back();
  return whole;
}

Result<std::optional<std::string>> read_secret(world::Disk& disk, const std::string& path) {
  if (path.empty()) return std::optional<std::string>();
  const Bytes bytes = TRY(world::read_file(disk, absolute(path), kKeyBytesMax), "--key-file");
  std::string secret(as_text(bytes));
  constexpr std::size_t kKeyBytes = 32;
  if (secret.size() != kKeyBytes && !secret.empty() && secret.back() == '\n') secret.pop_back();
  return std::optional(std::move(secret));
}

/// A line on a terminal that tells how far it is, once a second at most.
class ProgressLine {
 public:
  void show(std::uint64_t done, std::uint64_t total) {
    const auto now = std::chrono::steady_clock::now();
    if (!on_ || now - last_ < std::chrono::seconds(1)) return;
    last_ = now;
    drawn_ = true;
    std::fprintf(stderr, "\r%llu of %llu MB", static_cast<unsigned long long>(done / kMegabyte),
                 static_cast<unsigned long long>(total / kMegabyte));
    std::fflush(stderr);
  }
  void erase() const {
    if (drawn_) std::fprintf(stderr, "\r\033[K");
  }

 private:
  bool on_ = ::isatty(STDERR_FILENO) == 1;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

void report(const Wanted& wanted, const store::TensorArchive& archive) {
  std::uint64_t bytes = 0;
  for (const auto& tensor : archive.tensors()) bytes += tensor.tied_to.empty() ? tensor.bytes : 0;
  if (wanted.as_json) {
    nlohmann::json others = nlohmann::json::array();
    for (const std::string& each : archive.others()) others.push_back(store::shown(each));
    const nlohmann::json all = {{"from", wanted.from},
                                {"kind", archive.kind()},
                                {"to", wanted.to},
                                {"to_kind", wanted.kind},
                                {"bytes", bytes},
                                {"tensors", archive.tensors().size()},
                                {"verified", archive.has_checksums()},
                                {"left_out", others}};
    std::printf("%s\n", all.dump(2).c_str());
    return;
  }
  const std::size_t count = archive.tensors().size();
  std::printf("%s: %zu %s, %.2f MB, from %s to %s\n", wanted.to.c_str(), count, count == 1 ? "tensor" : "tensors",
              static_cast<double>(bytes) / static_cast<double>(kMegabyte), archive.kind().c_str(), wanted.kind.c_str());
  if (archive.others().empty()) return;
  std::string line = "left out, being no tensors:";
  for (std::size_t i = 0; i < archive.others().size() && i < kOthersShown; ++i) {
    line += (i > 0 ? ", " : " ") + store::shown(archive.others()[i]);
  }
  if (archive.others().size() > kOthersShown) {
    line += " and " + std::to_string(archive.others().size() - kOthersShown) + " more";
  }
  std::printf("%s\n", line.c_str());
}

Status convert(const Wanted& wanted) {
  const auto world = world::make_real_world();
  const auto secret = TRY(read_secret(world->disk(), wanted.key_file), "convert");
  const auto archive = TRY(store::open_archive(world->disk(), absolute(wanted.from), secret), "convert");
  const auto kind = wanted.kind == "dcp" ? store::WrittenKind::Dcp : store::WrittenKind::Safetensors;
  ProgressLine line;
  Status done = store::convert(*archive, world->disk(), absolute(wanted.to), kind,
                               [&](std::uint64_t so_far, std::uint64_t total) { line.show(so_far, total); });
  line.erase();
  if (!done) return done;
  report(wanted, *archive);
  return Ok{};
}

int exit_code_of(const Status& done) {
  if (done) return run::kExitDone;
  log_error(done.error().message());
  const Code code = done.error().code();
  return code == Code::Unavailable || code == Code::Internal ? run::kExitFailed : run::kExitUsage;
}

}  // namespace

void add_tensors_convert(CLI::App& tensors, int& exit_code) {
  CLI::App* command = tensors.add_subcommand(
      "convert", "Write the tensors of a safetensors, torch.save, tensorizer or DCP file as safetensors or DCP");
  const auto wanted = std::make_shared<Wanted>();
  command->add_option("in", wanted->from, "a file, or a folder of torch.distributed.checkpoint")
      ->required()
      ->type_name("IN");
  command->add_option("out", wanted->to, "the file or folder to write; a file is replaced")
      ->required()
      ->type_name("OUT");
  command->add_option("--to", wanted->kind, "safetensors (the default) or dcp")
      ->check(CLI::IsMember({"safetensors", "dcp"}))
      ->type_name("KIND");
  command->add_option("--key-file", wanted->key_file, "what an encrypted tensorizer file was encrypted with")
      ->type_name("FILE");
  command->add_flag("--json", wanted->as_json, "for programs: one object");
  command->footer("Example:\n  holdfast tensors convert model.pt model.safetensors\n");
  command->callback([wanted, &exit_code] { exit_code = exit_code_of(convert(*wanted)); });
}

}  // namespace holdfast::app
