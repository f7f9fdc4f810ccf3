// `holdfast tensors`: what is in a tensor file, and whether it is whole.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/key_flags.h"
#include "app/tensors_any_kind.h"
#include "app/tensors_commands.h"
#include "app/tensors_convert_command.h"
#include "app/text_table.h"
#include "base/log.h"
#include "run/coordinator.h"
#include "store/archive.h"
#include "store/dtype.h"
#include "store/sealed_file.h"
#include "world/locations.h"

namespace holdfast::app {
namespace {

using nlohmann::json;
using store::Model;
using store::ModelFile;
using store::ModelTensor;
using store::TensorFile;
using store::TensorInfo;

struct Wanted {
  std::vector<std::string> files;
  bool as_json = false;
  KeyFlags key{.prefix = "--key", .file = {}, .env = {}, .command = {}};
};

/// What is told of a file or a model.
struct Seen {
  json entry;
  std::string total;
  bool checksums = false;
  bool sealed = false;                         ///< encrypted or compressed, with checks of its own
  std::vector<std::vector<std::string>> rows;  ///< the first holds the titles
};

json tensor_json(const TensorInfo& tensor, std::uint64_t data_begin) {
  return {{"name", tensor.name},
          {"dtype", tensor.dtype},
          {"shape", tensor.shape},
          {"begin", data_begin + tensor.begin},
          {"bytes", tensor.end - tensor.begin}};
}

std::vector<std::string> tensor_row(const TensorInfo& tensor) {
  return {tensor.name, tensor.dtype, store::shape_text(tensor.shape), size_text(tensor.end - tensor.begin)};
}

json file_json(const std::string& path, const TensorFile& file) {
  return {{"file", path},
          {"bytes", file.header.file_bytes()},
          {"metadata", file.header.metadata},
          {"checksums", file.checksums.has_value()},
          {"sealed", file.checked}};
}

Seen seen_file(const std::string& path, const TensorFile& file) {
  const std::size_t count = file.header.tensors.size();
  Seen seen{file_json(path, file),
            std::to_string(count) + (count == 1 ? " tensor, " : " tensors, ") + size_text(file.header.data_bytes()),
            file.checksums.has_value(),
            file.checked,
            {{"name", "dtype", "shape", "size"}}};
  json tensors = json::array();
  for (const TensorInfo& tensor : file.header.tensors) {
    tensors.push_back(tensor_json(tensor, file.header.data_begin));
    seen.rows.push_back(tensor_row(tensor));
  }
  seen.entry["tensors"] = std::move(tensors);
  return seen;
}

Seen seen_model(const std::string& path, const Model& model) {
  if (model.index_path().empty()) return seen_file(path, model.files().front().tensors.about());
  json files = json::array();
  std::uint64_t bytes = 0;
  for (const ModelFile& file : model.files()) {
    files.push_back(file_json(file.name, file.tensors.about()));
    bytes += file.tensors.about().header.file_bytes();
  }
  Seen seen{{{"file", path}, {"index", model.index_path()}, {"bytes", bytes}, {"files", files}},
            total_text(model),
            model.has_checksums(),
            false,
            {{"name", "dtype", "shape", "size", "file"}}};
  json tensors = json::array();
  for (const ModelTensor& tensor : model.tensors()) {
    tensors.push_back(tensor_json(*tensor.info, tensor.file->tensors.about().header.data_begin));
    tensors.back()["file"] = tensor.file->name;
    seen.rows.push_back(tensor_row(*tensor.info));
    seen.rows.back().push_back(tensor.file->name);
  }
  seen.entry["checksums"] = seen.checksums;
  seen.entry["tensors"] = std::move(tensors);
  return seen;
}

/// A file of any kind, or a model; with `verify` every byte is read and checked.
Result<Seen> look(TensorsPlace& place, world::FileSource& files, const std::string& given, bool verify) {
  const std::string path = TensorsPlace::named(given);
  const Result<std::string> kind = store::archive_kind(files, path);
  if (kind && *kind != store::kSafetensorsKind) {
    const auto file = read_other_kind(files, path, verify, place.threads());
    if (!file) return file.error();
    return seen_file(given, *file);
  }
  const auto model = Model::open(files, path, place.threads());
  if (!model) return model.error();
  if (verify) {
    place.progress().begin("verifying", model->data_bytes());
    const Status good = model->verify(place.threads());
    place.progress().end();
    if (!good) return good.error();
  }
  return seen_model(given, *model);
}

/// Each file or model in turn; the exit code of the worst.
int for_each(const Wanted& wanted, bool verify, const std::function<void(const std::string&, const Seen&)>& print) {
  TensorsPlace place;
  const Result<std::optional<store::SealKey>> key = read_key(wanted.key);
  if (!key) return ended_by(key.error());
  store::UnsealedFiles files(place.source(), *key);
  int exit_code = run::kExitDone;
  json all = json::array();
  for (const std::string& path : wanted.files) {
    const Result<Seen> seen = look(place, files, path, verify);
    if (!seen) {
      const std::string why = world::without_secrets(seen.error().message(), path);
      log_error(printable(why));
      all.push_back({{"file", path}, {"error", why}});
      exit_code = run::kExitUsage;
    } else if (wanted.as_json) {
      all.push_back(seen->entry);
    } else {
      print(world::shown_location(path), *seen);
    }
  }
  if (wanted.as_json) std::printf("%s\n", all.dump(2, ' ', false, json::error_handler_t::replace).c_str());
  return exit_code;
}

int list(const Wanted& wanted) {
  return for_each(wanted, /*verify=*/false, [](const std::string& path, const Seen& seen) {
    std::printf("%s: %s, %s\n%s", path.c_str(), seen.total.c_str(),
                seen.sealed      ? "sealed"
                : seen.checksums ? "with checksums"
                                 : "without checksums",
                text_table(seen.rows, {3}).c_str());
  });
}

int verify(const Wanted& wanted) {
  return for_each(wanted, /*verify=*/true, [](const std::string& path, const Seen& seen) {
    std::printf("%s: %s, %s\n", path.c_str(), seen.total.c_str(),
                seen.sealed      ? "sealed, and every byte is as it was written"
                : seen.checksums ? "every byte matches its checksum"
                                 : "the header is right; there are no checksums, so its data can't be checked");
  });
}

void add(CLI::App& tensors, const char* name, const char* what, const char* example, int (*act)(const Wanted&),
         int& exit_code) {
  CLI::App* command = tensors.add_subcommand(name, what);
  const auto wanted = std::make_shared<Wanted>();
  command
      ->add_option(
          "files", wanted->files,
          "tensor files (safetensors, torch.save, tensorizer), folders of a model or of DCP; also URLs and s3://")
      ->required()
      ->type_name("FILE");
  command->add_flag("--json", wanted->as_json, "for programs: a list with an entry for each file");
  add_key_flags(*command, wanted->key, "for encrypted files");
  command->footer(std::string("Example:\n  ") + example + "\n");
  command->callback([wanted, act, &exit_code] { exit_code = act(*wanted); });
}

}  // namespace

void add_tensors(CLI::App& app, int& exit_code) {
  CLI::App* tensors =
      app.add_subcommand("tensors", "Look into tensor files (safetensors), verify, compare, copy and split them");
  tensors->require_subcommand(1);
  add(*tensors, "ls", "List the tensors of files and folders; reads their headers alone",
      "holdfast tensors ls model-00001-of-00002.safetensors", &list, exit_code);
  add(*tensors, "verify", "Read every byte of files and check it; exit code 2 where one is bad",
      "holdfast tensors verify *.safetensors", &verify, exit_code);
  add_tensors_convert(*tensors, exit_code);
  add_tensors_encrypt(*tensors, exit_code);
  add_tensors_cat(*tensors, exit_code);
  add_tensors_diff(*tensors, exit_code);
  add_tensors_cp(*tensors, exit_code);
  add_tensors_reshard(*tensors, exit_code);
}

}  // namespace holdfast::app
