// `holdfast tensors diff`: what two tensor files or models have in common, and where they differ.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>

#include "app/tensors_commands.h"
#include "app/text_table.h"
#include "run/coordinator.h"
#include "store/dtype.h"
#include "store/tensor_values.h"

namespace holdfast::app {
namespace {

using nlohmann::json;
using store::Model;
using store::ModelTensor;
using store::TensorDifference;

constexpr int kExitDifferent = 1;

struct Wanted {
  std::string a, b;
  double tolerance = 0;
  bool every_byte = false;
  bool checksums = false;
  bool as_json = false;
};

struct Difference {
  std::vector<std::string> only_a, only_b;
  std::vector<std::string> other_kind;  ///< another dtype or shape
  std::map<std::string, TensorDifference> common;
};

std::string kind(const ModelTensor& tensor) { return tensor.info->dtype + " " + store::shape_text(tensor.info->shape); }

/// The names of each, told apart; what is left is to compare the tensors of `common`.
Difference sort_names(const Model& a, const Model& b) {
  Difference found;
  for (const std::string& name : a.names()) {
    const auto other = b.find(name);
    if (!other) {
      found.only_a.push_back(name);
    } else if (kind(*a.find(name)) != kind(*other)) {
      found.other_kind.push_back(name);
    } else {
      found.common[name];
    }
  }
  for (const std::string& name : b.names()) {
    if (!a.find(name)) found.only_b.push_back(name);
  }
  return found;
}

/// Tied names lead to the same two tensors, which are read once.
Status compare_common(const Model& a, const Model& b, const store::DiffPolicy& policy, unsigned threads,
                      Difference& found) {
  std::map<std::pair<const store::TensorInfo*, const store::TensorInfo*>, TensorDifference> seen;
  for (auto& [name, difference] : found.common) {
    const ModelTensor left = *a.find(name);
    const ModelTensor right = *b.find(name);
    const auto known = seen.find({left.info, right.info});
    difference = known != seen.end() ? known->second : TRY(store::compare(left, right, policy, threads), "compare");
    seen.emplace(std::pair(left.info, right.info), difference);
  }
  return Ok{};
}

std::size_t differing(const Difference& found) {
  return static_cast<std::size_t>(std::count_if(found.common.begin(), found.common.end(),
                                                [](const auto& each) { return each.second.beyond != 0; }));
}

bool same(const Difference& found) {
  return found.only_a.empty() && found.only_b.empty() && found.other_kind.empty() && differing(found) == 0;
}

std::size_t by_checksums(const Difference& found) {
  return static_cast<std::size_t>(std::count_if(found.common.begin(), found.common.end(),
                                                [](const auto& each) { return each.second.by_checksums; }));
}

std::string compared_text(const Difference& found) {
  const std::size_t trusted = by_checksums(found);
  const std::string of_all = std::to_string(found.common.size()) + (found.common.size() == 1 ? " tensor" : " tensors");
  if (trusted == 0) return "every byte of " + of_all;
  return "the checksums alone of " + std::to_string(trusted) + " of " + of_all + ", every byte of the others";
}

std::string number(long double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.4Lg", value);
  return text.data();
}

void print(const Wanted& wanted, const Model& a, const Model& b, const Difference& found) {
  for (const auto& [names, model, where] : {std::tuple(&found.only_a, &a, &wanted.a), {&found.only_b, &b, &wanted.b}}) {
    for (const std::string& name : *names) {
      std::printf("only in %s: %s, %s\n", where->c_str(), printable(name).c_str(), kind(*model->find(name)).c_str());
    }
  }
  for (const std::string& name : found.other_kind) {
    std::printf("other kind: %s, %s and %s\n", printable(name).c_str(), kind(*a.find(name)).c_str(),
                kind(*b.find(name)).c_str());
  }
  std::vector<std::vector<std::string>> rows = {{"other values", "elements", "of", "largest difference", "relative"}};
  for (const auto& [name, difference] : found.common) {
    if (difference.beyond == 0) continue;
    rows.push_back({name, std::to_string(difference.beyond), std::to_string(difference.elements),
                    number(difference.absolute_max), number(difference.relative_max)});
  }
  if (rows.size() > 1) std::printf("%s", text_table(rows, {1, 2, 3, 4}).c_str());
  const std::size_t others = found.only_a.size() + found.only_b.size() + found.other_kind.size() + differing(found);
  const std::string within = wanted.tolerance > 0 ? " within " + number(wanted.tolerance) : "";
  std::printf("%s; compared: %s\n",
              same(found) ? ("the same" + within).c_str() : (std::to_string(others) + " differ" + within).c_str(),
              compared_text(found).c_str());
}

/// JSON has no infinity.
json number_json(long double value) { return std::isfinite(value) ? json(static_cast<double>(value)) : json("inf"); }

json entry_json(const std::string& name, const ModelTensor& a, const ModelTensor& b) {
  return {{"name", name},
          {"a", {{"dtype", a.info->dtype}, {"shape", a.info->shape}}},
          {"b", {{"dtype", b.info->dtype}, {"shape", b.info->shape}}}};
}

void print_json(const Wanted& wanted, const Model& a, const Model& b, const Difference& found) {
  json other_kind = json::array();
  for (const std::string& name : found.other_kind) other_kind.push_back(entry_json(name, *a.find(name), *b.find(name)));
  json values = json::array();
  for (const auto& [name, each] : found.common) {
    if (each.other == 0) continue;
    values.push_back({{"name", name},
                      {"elements", each.elements},
                      {"other", each.other},
                      {"beyond_tolerance", each.beyond},
                      {"first", each.first ? json(*each.first) : json(nullptr)},
                      {"absolute_max", number_json(each.absolute_max)},
                      {"relative_max", number_json(each.relative_max)}});
  }
  const json all = {{"a", wanted.a},
                    {"b", wanted.b},
                    {"same", same(found)},
                    {"tolerance", wanted.tolerance},
                    {"only_a", found.only_a},
                    {"only_b", found.only_b},
                    {"other_kind", other_kind},
                    {"other_values", values},
                    {"compared", {{"tensors", found.common.size()}, {"by_checksums_alone", by_checksums(found)}}}};
  std::printf("%s\n", all.dump(2, ' ', false, json::error_handler_t::replace).c_str());
}

std::uint64_t bytes_to_read(const Model& a, const Difference& found) {
  std::uint64_t bytes = 0;
  for (const auto& [name, each] : found.common) {
    const store::TensorInfo& info = *a.find(name)->info;
    bytes += 2 * (info.end - info.begin);
  }
  return bytes;
}

Result<int> diff(const Wanted& wanted) {
  TensorsPlace place;
  const Model a = TRY(Model::open(place.source(), TensorsPlace::named(wanted.a), place.threads()), "diff");
  const Model b = TRY(Model::open(place.source(), TensorsPlace::named(wanted.b), place.threads()), "diff");
  Difference found = sort_names(a, b);
  place.progress().begin("comparing", bytes_to_read(a, found));
  const store::DiffPolicy policy = {.tolerance = wanted.tolerance, .trust_checksums = wanted.checksums};
  const Status done = compare_common(a, b, policy, place.threads(), found);
  place.progress().end();
  if (!done) return done.error();
  (wanted.as_json ? print_json : print)(wanted, a, b, found);
  return same(found) ? run::kExitDone : kExitDifferent;
}

}  // namespace

void add_tensors_diff(CLI::App& tensors, int& exit_code) {
  CLI::App* command = tensors.add_subcommand(
      "diff", "Compare two files or models; exit code 0: the same, 1: they differ, 2: one can't be read");
  const auto wanted = std::make_shared<Wanted>();
  for (const auto& [name, into] : {std::pair("a", &wanted->a), {"b", &wanted->b}}) {
    command->add_option(name, *into, "a safetensors file, an index, or a folder that holds a model")
        ->required()
        ->type_name("FILE");
  }
  command
      ->add_option("--tolerance", wanted->tolerance,
                   "values this far apart are the same, absolutely or relative to the larger (0: bytes count)")
      ->type_name("X")
      ->check(CLI::NonNegativeNumber);
  CLI::Option* every_byte = command->add_flag("--bytes", wanted->every_byte, "read every byte of both (what it does)");
  command
      ->add_flag("--checksums", wanted->checksums,
                 "believe checksums: where both have the same layout and they match, don't read")
      ->excludes(every_byte);
  command->add_flag("--json", wanted->as_json, "for programs");
  command->footer("Example:\n  holdfast tensors diff before.safetensors after/ --tolerance 1e-5\n");
  command->callback([wanted, &exit_code] {
    const Result<int> done = diff(*wanted);
    if (!done) (void)ended_by(done.error());
    exit_code = done ? *done : run::kExitUsage;
  });
}

}  // namespace holdfast::app
