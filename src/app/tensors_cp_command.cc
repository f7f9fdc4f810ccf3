// `holdfast tensors cp`: a copy of a tensor file or a model, checked on the way.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/tensors_commands.h"
#include "app/text_table.h"
#include "run/coordinator.h"
#include "store/model_copy.h"

namespace holdfast::app {
namespace {

struct Wanted {
  std::string from, to;
  bool as_json = false;
};

/// A folder is copied into a folder; a file to the name given, or into the folder given.
bool into_folder(const Wanted& wanted, const store::Model& model) {
  if (!model.index_path().empty()) return true;
  std::error_code unknown;
  if (wanted.to.ends_with('/') || std::filesystem::is_directory(wanted.to, unknown)) return true;
  const bool from_folder = model.files().front().tensors.path() != TensorsPlace::named(wanted.from);
  return from_folder && !wanted.to.ends_with(".safetensors");
}

int copy(const Wanted& wanted) {
  TensorsPlace place;
  const auto model = store::Model::open(place.source(), TensorsPlace::named(wanted.from), place.threads());
  if (!model) return ended_by(model.error());
  const std::string to = TensorsPlace::named(wanted.to);
  place.progress().begin("copying", model->data_bytes());
  store::ModelPlace target = place.target(TensorsPlace::named(wanted.to));
  const Status done = into_folder(wanted, *model)
                          ? store::copy_model(*model, target, to, place.threads(), TensorsPlace::aside())
                          : store::copy_tensor_file(model->files().front().tensors, target.target, to, place.threads(),
                                                    TensorsPlace::aside());
  place.progress().end();
  if (!done) return ended_by(done.error());
  if (wanted.as_json) {
    const nlohmann::json all = {{"from", wanted.from},
                                {"to", wanted.to},
                                {"files", model->files().size()},
                                {"tensors", model->tensors().size()},
                                {"bytes", model->data_bytes()},
                                {"checksums", model->has_checksums()}};
    std::printf("%s\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    std::printf("%s: %s copied, %s\n", wanted.to.c_str(), total_text(*model).c_str(),
                model->has_checksums() ? "every byte matched its checksum"
                                       : "whose data could not be checked: there are no checksums");
  }
  return run::kExitDone;
}

}  // namespace

void add_tensors_cp(CLI::App& tensors, int& exit_code) {
  CLI::App* command =
      tensors.add_subcommand("cp", "Copy a tensor file or a model byte for byte, checking it on the way");
  const auto wanted = std::make_shared<Wanted>();
  command->add_option("src", wanted->from, "a safetensors file, an index, or a folder that holds a model")
      ->required()
      ->type_name("SRC");
  command->add_option("dst", wanted->to, "the copy, or the folder to copy into")->required()->type_name("DST");
  command->add_flag("--json", wanted->as_json, "for programs");
  command->footer(
      "What is damaged is not copied (exit code 2); the copy appears whole or not at all, an index last. Tensor files\n"
      "and the index are copied, not what else is in a folder.\n"
      "Examples:\n  holdfast tensors cp model.safetensors /backup/\n  holdfast tensors cp llama/ /backup/llama\n");
  command->callback([wanted, &exit_code] { exit_code = copy(*wanted); });
}

}  // namespace holdfast::app
