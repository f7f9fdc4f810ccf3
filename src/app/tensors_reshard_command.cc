// `holdfast tensors reshard`: a model spread over more files, or fewer.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/tensors_commands.h"
#include "app/text_table.h"
#include "base/log.h"
#include "run/coordinator.h"
#include "store/model_copy.h"

namespace holdfast::app {
namespace {

struct Wanted {
  std::string from, to, bytes_max;
  std::optional<std::size_t> shards;
  bool as_json = false;
};

Result<store::Cut> cut_of(const Wanted& wanted) {
  if (wanted.shards) return store::Cut(store::FileCount{*wanted.shards});
  if (wanted.bytes_max.empty()) {
    return Error(Code::BadInput, "say how to cut: --max-shard-bytes 5GB or --shards 4");
  }
  const std::uint64_t bytes = TRY(store::parse_byte_size(wanted.bytes_max), "--max-shard-bytes");
  return store::Cut(store::FileSize{bytes});
}

int reshard(const Wanted& wanted) {
  const auto cut = cut_of(wanted);
  if (!cut) return ended_by(cut.error());
  TensorsPlace place;
  const auto model = store::Model::open(place.source(), TensorsPlace::named(wanted.from), place.threads());
  if (!model) return ended_by(model.error());
  place.progress().begin("resharding", model->data_bytes());
  const auto done = store::reshard_model(*model, place.target(TensorsPlace::named(wanted.to)),
                                         TensorsPlace::named(wanted.to), *cut, place.threads(), TensorsPlace::aside());
  place.progress().end();
  if (!done) return ended_by(done.error());
  for (const std::string& key : done->disputed) {
    log_warn("metadata " + printable(key) + " differs between the files of " + wanted.from +
             "; that of the first was kept");
  }
  if (wanted.as_json) {
    const nlohmann::json all = {{"to", wanted.to},
                                {"files", done->files},
                                {"tensors", model->tensors().size()},
                                {"bytes", model->data_bytes()},
                                {"source_checksums", model->has_checksums()},
                                {"disputed_metadata", done->disputed}};
    std::printf("%s\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    std::printf("%s: %zu tensors, %s in %zu %s, %s\n", wanted.to.c_str(), model->tensors().size(),
                size_text(model->data_bytes()).c_str(), done->files.size(), done->files.size() == 1 ? "file" : "files",
                model->has_checksums() ? "every byte read matched its checksum"
                                       : "with checksums from now on; the source had none");
  }
  return run::kExitDone;
}

}  // namespace

void add_tensors_reshard(CLI::App& tensors, int& exit_code) {
  CLI::App* command = tensors.add_subcommand("reshard", "Split a model into several files with an index, or join them");
  const auto wanted = std::make_shared<Wanted>();
  command->add_option("src", wanted->from, "a safetensors file, an index, or a folder that holds a model")
      ->required()
      ->type_name("SRC");
  command->add_option("dst", wanted->to, "a folder; a name ending in .safetensors is one file")
      ->required()
      ->type_name("DST");
  CLI::Option* bytes =
      command->add_option("--max-shard-bytes", wanted->bytes_max, "data in each file at most: 5GB, 500MB, 4GiB")
          ->type_name("SIZE");
  command->add_option("--shards", wanted->shards, "so many files, as even as can be")->type_name("N")->excludes(bytes);
  command->add_flag("--json", wanted->as_json, "for programs");
  command->footer(
      "Every byte is checked as it is read, where there are checksums. Memory stays small however large the model is.\n"
      "Examples:\n  holdfast tensors reshard model.safetensors llama/ --max-shard-bytes 5GB\n"
      "  holdfast tensors reshard llama/ one.safetensors --shards 1\n");
  command->callback([wanted, &exit_code] { exit_code = reshard(*wanted); });
}

}  // namespace holdfast::app
