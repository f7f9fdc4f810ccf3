// `holdfast tensors`: what is in a tensor file, and whether it is whole.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/tensors_commands.h"
#include "app/text_table.h"
#include "base/log.h"
#include "run/coordinator.h"
#include "store/dtype.h"

namespace holdfast::app {
namespace {

using nlohmann::json;
using store::Model;
using store::ModelFile;
using store::ModelTensor;

struct Wanted {
  std::vector<std::string> files;
  bool as_json = false;
};

json tensors_json(const Model& model) {
  json tensors = json::array();
  for (const ModelTensor& tensor : model.tensors()) {
    json entry = {{"name", tensor.info->name},
                  {"dtype", tensor.info->dtype},
                  {"shape", tensor.info->shape},
                  {"begin", tensor.file->tensors.about().header.data_begin + tensor.info->begin},
                  {"bytes", tensor.info->end - tensor.info->begin}};
    if (!model.index_path().empty()) entry["file"] = tensor.file->name;
    tensors.push_back(std::move(entry));
  }
  return tensors;
}

json file_json(const std::string& path, const ModelFile& file) {
  const store::TensorFile& about = file.tensors.about();
  return {{"file", path},
          {"bytes", about.header.file_bytes()},
          {"metadata", about.header.metadata},
          {"checksums", about.checksums.has_value()}};
}

json model_json(const std::string& path, const Model& model) {
  if (model.index_path().empty()) {
    json entry = file_json(path, model.files().front());
    entry["tensors"] = tensors_json(model);
    return entry;
  }
  json files = json::array();
  std::uint64_t bytes = 0;
  for (const ModelFile& file : model.files()) {
    files.push_back(file_json(file.name, file));
    bytes += file.tensors.about().header.file_bytes();
  }
  return {{"file", path},   {"index", model.index_path()},        {"bytes", bytes},
          {"files", files}, {"checksums", model.has_checksums()}, {"tensors", tensors_json(model)}};
}

void print_table(const std::string& path, const Model& model) {
  const bool with_file = !model.index_path().empty();
  std::vector<std::vector<std::string>> rows = {{"name", "dtype", "shape", "size"}};
  if (with_file) rows.front().emplace_back("file");
  for (const ModelTensor& tensor : model.tensors()) {
    rows.push_back({tensor.info->name, tensor.info->dtype, store::shape_text(tensor.info->shape),
                    size_text(tensor.info->end - tensor.info->begin)});
    if (with_file) rows.back().push_back(tensor.file->name);
  }
  std::printf("%s: %s, %s\n%s", path.c_str(), total_text(model).c_str(), checksums_text(model).c_str(),
              text_table(rows, {3}).c_str());
}

/// Each file or model in turn; the exit code of the worst.
int for_each(const Wanted& wanted, const std::function<Result<Model>(TensorsPlace&, const std::string&)>& read,
             const std::function<void(const std::string&, const Model&)>& print) {
  TensorsPlace place;
  int exit_code = run::kExitDone;
  json all = json::array();
  for (const std::string& path : wanted.files) {
    const Result<Model> model = read(place, TensorsPlace::named(path));
    place.progress().end();
    if (!model) {
      log_error(printable(model.error().message()));
      all.push_back({{"file", path}, {"error", model.error().message()}});
      exit_code = run::kExitUsage;
    } else if (wanted.as_json) {
      all.push_back(model_json(path, *model));
    } else {
      print(path, *model);
    }
  }
  if (wanted.as_json) std::printf("%s\n", all.dump(2, ' ', false, json::error_handler_t::replace).c_str());
  return exit_code;
}

int list(const Wanted& wanted) {
  const auto read = [](TensorsPlace& place, const std::string& path) {
    return Model::open(place.source(), path, place.threads());
  };
  return for_each(wanted, read, print_table);
}

int verify(const Wanted& wanted) {
  const auto read = [](TensorsPlace& place, const std::string& path) -> Result<Model> {
    auto model = Model::open(place.source(), path, place.threads());
    if (!model) return model;
    place.progress().begin("verifying", model->data_bytes());
    if (Status good = model->verify(place.threads()); !good) return std::move(good).error();
    return model;
  };
  return for_each(wanted, read, [](const std::string& path, const Model& model) {
    std::printf("%s: %s, %s\n", path.c_str(), total_text(model).c_str(),
                model.has_checksums() ? "every byte matches its checksum"
                                      : "the header is right; there are no checksums, so its data can't be checked");
  });
}

void add(CLI::App& tensors, const char* name, const char* what, const char* example, int (*act)(const Wanted&),
         int& exit_code) {
  CLI::App* command = tensors.add_subcommand(name, what);
  const auto wanted = std::make_shared<Wanted>();
  command->add_option("files", wanted->files, "safetensors files, indexes, or folders that hold a model")
      ->required()
      ->type_name("FILE");
  command->add_flag("--json", wanted->as_json, "for programs: a list with an entry for each file");
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
  add_tensors_cat(*tensors, exit_code);
  add_tensors_diff(*tensors, exit_code);
  add_tensors_cp(*tensors, exit_code);
  add_tensors_reshard(*tensors, exit_code);
}

}  // namespace holdfast::app
