// `holdfast tensors cat`: one tensor's values, as a person reads them.
#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/tensors_commands.h"
#include "app/text_table.h"
#include "run/coordinator.h"
#include "store/dtype.h"
#include "store/elements.h"
#include "store/tensor_values.h"

namespace holdfast::app {
namespace {

using nlohmann::json;

struct Wanted {
  std::string file, name;
  std::size_t limit = 10;
  bool as_json = false;
};

/// A complex tensor's statistics are of its magnitudes, which are plain numbers.
std::string number_text(const std::string& dtype, const std::optional<long double>& value) {
  if (!value) return "none";
  return store::element_text(dtype == "C64" ? "F32" : (dtype == "BOOL" ? "U8" : dtype), &*value);
}

/// The mean of whole numbers is none.
std::string mean_text(const std::optional<long double>& mean) {
  if (!mean) return "none";
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.6Lg", *mean);
  return text.data();
}

/// A number where JSON has one for it, else text.
json number_json(const std::string& text) {
  json number = json::parse(text, nullptr, false);
  return number.is_discarded() ? json(text) : number;
}

json optional_json(const std::string& dtype, const std::optional<long double>& value) {
  return value ? number_json(number_text(dtype, value)) : json(nullptr);
}

void print_json(const store::ModelTensor& tensor, const store::TensorStatistics& found) {
  json first = json::array();
  for (const std::string& text : found.first) first.push_back(number_json(text));
  const json all = {{"file", tensor.file->tensors.path()},
                    {"name", tensor.info->name},
                    {"dtype", tensor.info->dtype},
                    {"shape", tensor.info->shape},
                    {"bytes", tensor.info->end - tensor.info->begin},
                    {"checksums", tensor.file->tensors.about().checksums.has_value()},
                    {"elements", found.elements},
                    {"min", optional_json(tensor.info->dtype, found.min)},
                    {"max", optional_json(tensor.info->dtype, found.max)},
                    {"mean", found.mean ? json(static_cast<double>(*found.mean)) : json(nullptr)},
                    {"nan", found.nan},
                    {"infinite", found.infinite},
                    {"first", first}};
  std::printf("%s\n", all.dump(2, ' ', false, json::error_handler_t::replace).c_str());
}

void print(const store::ModelTensor& tensor, const store::TensorStatistics& found) {
  const std::string& dtype = tensor.info->dtype;
  const std::string magnitude = dtype == "C64" ? "magnitude: " : "";
  std::printf("%s: %s %s, %s, in %s\n", printable(tensor.info->name).c_str(), dtype.c_str(),
              store::shape_text(tensor.info->shape).c_str(), size_text(tensor.info->end - tensor.info->begin).c_str(),
              tensor.file->tensors.path().c_str());
  std::printf("%smin %s, max %s, mean %s; NaN %llu, infinite %llu\n", magnitude.c_str(),
              number_text(dtype, found.min).c_str(), number_text(dtype, found.max).c_str(),
              mean_text(found.mean).c_str(), static_cast<unsigned long long>(found.nan),
              static_cast<unsigned long long>(found.infinite));
  if (found.first.empty()) return;
  const bool all = found.first.size() == found.elements;
  std::printf("%s %zu of %llu:", all ? "all" : "first", found.first.size(),
              static_cast<unsigned long long>(found.elements));
  for (const std::string& text : found.first) std::printf(" %s", text.c_str());
  std::printf("\n");
}

int cat(const Wanted& wanted) {
  TensorsPlace place;
  const std::string path = TensorsPlace::named(wanted.file);
  const auto model = store::Model::open(place.source(), path, place.threads());
  if (!model) return ended_by(model.error());
  const auto tensor = model->find(wanted.name);
  if (!tensor) {
    return ended_by({Code::BadInput, path + ": holds no tensor " + wanted.name + "; holdfast tensors ls " +
                                         wanted.file + " shows what it holds"});
  }
  place.progress().begin("reading", tensor->info->end - tensor->info->begin);
  const auto found = store::measure(*tensor, wanted.limit, place.threads());
  place.progress().end();
  if (!found) return ended_by(found.error());
  (wanted.as_json ? print_json : print)(*tensor, *found);
  return run::kExitDone;
}

}  // namespace

void add_tensors_cat(CLI::App& tensors, int& exit_code) {
  CLI::App* command =
      tensors.add_subcommand("cat", "Show what is in a tensor: its range, what is not finite, its first values");
  const auto wanted = std::make_shared<Wanted>();
  command->add_option("file", wanted->file, "a safetensors file, an index, or a folder that holds a model")
      ->required()
      ->type_name("FILE");
  command->add_option("name", wanted->name, "the tensor's")->required()->type_name("NAME");
  command->add_option("--limit", wanted->limit, "so many of its first values (10)")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{0}, std::size_t{100'000}));
  command->add_flag("--json", wanted->as_json, "for programs; what JSON has no number for is text: \"nan\"");
  command->footer(
      "Minimum, maximum and mean are over the finite values; of a complex tensor, over their magnitudes.\n"
      "Example:\n  holdfast tensors cat model.safetensors lm_head.weight --limit 4\n");
  command->callback([wanted, &exit_code] { exit_code = cat(*wanted); });
}

}  // namespace holdfast::app
