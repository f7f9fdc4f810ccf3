// `holdfast tensors`: what is in a tensor file, and whether it is whole.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/key_flags.h"
#include "base/log.h"
#include "run/coordinator.h"
#include "store/dtype.h"
#include "store/sealed_file.h"
#include "store/tensor_file.h"
#include "world/parallel.h"
#include "world/real_world.h"

namespace holdfast::app {
namespace {

using nlohmann::json;
using store::TensorFile;
using store::TensorInfo;

struct Wanted {
  std::vector<std::string> files;
  bool as_json = false;
  KeyFlags key{.prefix = "--key", .file = {}, .env = {}, .command = {}};
};

std::string absolute(const std::string& path) { return std::filesystem::absolute(path).string(); }

std::string size_text(std::uint64_t bytes) {
  constexpr std::array units = {"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1000 && unit + 1 < units.size(); ++unit) value /= 1000;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.2f %s", value, units.at(unit));
  return text.data();
}

json file_json(const std::string& path, const TensorFile& file) {
  json tensors = json::array();
  for (const TensorInfo& tensor : file.header.tensors) {
    tensors.push_back({{"name", tensor.name},
                       {"dtype", tensor.dtype},
                       {"shape", tensor.shape},
                       {"begin", file.header.data_begin + tensor.begin},
                       {"bytes", tensor.end - tensor.begin}});
  }
  return {{"file", path},
          {"bytes", file.header.file_bytes()},
          {"metadata", file.header.metadata},
          {"checksums", file.checksums.has_value()},
          {"sealed", file.checked},
          {"tensors", tensors}};
}

std::string total_text(const TensorFile& file) {
  const std::size_t count = file.header.tensors.size();
  return std::to_string(count) + (count == 1 ? " tensor, " : " tensors, ") + size_text(file.header.data_bytes());
}

void print_table(const std::string& path, const TensorFile& file) {
  std::size_t name_width = 4;
  std::size_t shape_width = 5;
  for (const TensorInfo& tensor : file.header.tensors) {
    name_width = std::max(name_width, tensor.name.size());
    shape_width = std::max(shape_width, store::shape_text(tensor.shape).size());
  }
  const auto line = [&](const std::string& name, const std::string& dtype, const std::string& shape,
                        const std::string& size) {
    std::printf("%-*s  %-11s  %-*s  %10s\n", static_cast<int>(name_width), name.c_str(), dtype.c_str(),
                static_cast<int>(shape_width), shape.c_str(), size.c_str());
  };
  std::printf("%s: %s, %s\n", path.c_str(), total_text(file).c_str(),
              file.checked     ? "sealed"
              : file.checksums ? "with checksums"
                               : "without checksums");
  line("name", "dtype", "shape", "size");
  for (const TensorInfo& tensor : file.header.tensors) {
    line(tensor.name, tensor.dtype, store::shape_text(tensor.shape), size_text(tensor.end - tensor.begin));
  }
}

/// Each file in turn; the exit code of the worst.
int for_each(const Wanted& wanted,
             const std::function<Result<TensorFile>(world::FileSource&, const std::string&)>& read,
             const std::function<void(const std::string&, const TensorFile&)>& print) {
  const auto world = world::make_real_world();
  const Result<std::optional<store::SealKey>> key = read_key(wanted.key);
  if (!key) {
    log_error(key.error().message());
    return run::kExitUsage;
  }
  store::UnsealedFiles files(world->disk(), *key);
  int exit_code = run::kExitDone;
  json all = json::array();
  for (const std::string& path : wanted.files) {
    const Result<TensorFile> file = read(files, absolute(path));
    if (!file) {
      log_error(file.error().message());
      all.push_back({{"file", path}, {"error", file.error().message()}});
      exit_code = run::kExitUsage;
    } else if (wanted.as_json) {
      all.push_back(file_json(path, *file));
    } else {
      print(path, *file);
    }
  }
  if (wanted.as_json) std::printf("%s\n", all.dump(2).c_str());
  return exit_code;
}

int list(const Wanted& wanted) {
  return for_each(
      wanted, [](world::FileSource& files, const std::string& path) { return store::read_tensor_file(files, path); },
      print_table);
}

int verify(const Wanted& wanted) {
  const auto read = [](world::FileSource& files, const std::string& path) {
    return store::verify_tensor_file(files, path, world::usable_cpus());
  };
  return for_each(wanted, read, [](const std::string& path, const TensorFile& file) {
    std::printf("%s: %s, %s\n", path.c_str(), total_text(file).c_str(),
                file.checked     ? "sealed, and every byte is as it was written"
                : file.checksums ? "every byte matches its checksum"
                                 : "the header is right; there are no checksums, so its data can't be checked");
  });
}

void add(CLI::App& tensors, const char* name, const char* what, const char* example, int (*act)(const Wanted&),
         int& exit_code) {
  CLI::App* command = tensors.add_subcommand(name, what);
  const auto wanted = std::make_shared<Wanted>();
  command->add_option("files", wanted->files, "safetensors files")->required()->type_name("FILE");
  command->add_flag("--json", wanted->as_json, "for programs: a list with an entry for each file");
  add_key_flags(*command, wanted->key, "for encrypted files");
  command->footer(std::string("Example:\n  ") + example + "\n");
  command->callback([wanted, act, &exit_code] { exit_code = act(*wanted); });
}

}  // namespace

void add_tensors(CLI::App& app, int& exit_code) {
  CLI::App* tensors = app.add_subcommand("tensors", "Look into tensor files (safetensors) and verify them");
  tensors->require_subcommand(1);
  add(*tensors, "ls", "List the tensors of files; reads their headers alone",
      "holdfast tensors ls model-00001-of-00002.safetensors", &list, exit_code);
  add(*tensors, "verify", "Read every byte of files and check it; exit code 2 where one is bad",
      "holdfast tensors verify *.safetensors", &verify, exit_code);
  add_tensors_encrypt(*tensors, exit_code);
}

}  // namespace holdfast::app
