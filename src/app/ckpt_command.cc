// `holdfast ckpt`: the checkpoints of a directory, on a disk or an object store.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/ckpt_place.h"
#include "app/commands.h"
#include "app/text_table.h"
#include "base/log.h"
#include "run/coordinator.h"

namespace holdfast::app {
namespace {

using nlohmann::json;
using store::ListedCheckpoint;

struct Wanted {
  std::string place;
  std::string to;
  std::size_t keep = 2;
  std::optional<Step> step;
  bool dry_run = false;
  bool as_json = false;
};

void print_json(const json& value) {
  std::printf("%s\n", value.dump(2, ' ', false, json::error_handler_t::replace).c_str());
}

std::string counted(std::size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

json entry_json(const ListedCheckpoint& entry) {
  json shown = {{"checkpoint", checkpoint_name(entry.id)},
                {"step", entry.id.step},
                {"epoch", entry.id.epoch},
                {"committed", entry.committed}};
  if (!entry.manifest) {
    shown["why"] = entry.why;
    return shown;
  }
  const ManifestSize size = size_of(*entry.manifest);
  shown["run_id"] = entry.manifest->run_id;
  shown["world_size"] = entry.manifest->world_size;
  shown["shards"] = entry.manifest->shards.size();
  shown["bytes"] = size.own;
  shown["shared_bytes"] = size.shared;
  return shown;
}

int list(const Wanted& wanted) {
  CkptPlace place;
  const auto dir = place.directory(wanted.place, kKeepAll);
  if (!dir) return ended_by(dir.error());
  const auto all = (*dir)->all();
  if (!all) return ended_by(all.error());
  if (wanted.as_json) {
    json entries = json::array();
    for (const ListedCheckpoint& entry : all->checkpoints) entries.push_back(entry_json(entry));
    print_json({{"directory", wanted.place}, {"checkpoints", entries}, {"foreign", all->foreign}});
    return run::kExitDone;
  }
  std::vector<std::vector<std::string>> rows = {{"step", "epoch", "ranks", "shards", "size", "shared", "state"}};
  for (const ListedCheckpoint& entry : all->checkpoints) {
    std::vector<std::string> row = {std::to_string(entry.id.step), std::to_string(entry.id.epoch)};
    if (entry.manifest) {
      const ManifestSize size = size_of(*entry.manifest);
      row.insert(row.end(), {std::to_string(entry.manifest->world_size), std::to_string(entry.manifest->shards.size()),
                             size_text(size.own), size.shared == 0 ? "-" : size_text(size.shared), "committed"});
    } else {
      row.insert(row.end(), {"-", "-", "-", "-", printable(entry.why)});
    }
    rows.push_back(std::move(row));
  }
  std::printf("%s: %s, newest first\n%s", wanted.place.c_str(), counted(all->checkpoints.size(), "checkpoint").c_str(),
              text_table(rows, {0, 1, 2, 3, 4, 5}).c_str());
  for (const std::string& name : all->foreign) std::printf("not a checkpoint: %s\n", printable(name).c_str());
  return run::kExitDone;
}

int verify(const Wanted& wanted) {
  CkptPlace place;
  const auto found = place.checkpoints(wanted.place, wanted.step);
  if (!found) return ended_by(found.error());
  int exit_code = run::kExitDone;
  json entries = json::array();
  for (const std::string& dir : *found) {
    const auto manifest = place.verify(dir);
    if (!manifest) {
      log_error(printable(manifest.error().message()));
      entries.push_back({{"checkpoint", dir}, {"good", false}, {"why", manifest.error().message()}});
      exit_code = run::kExitUsage;
      continue;
    }
    const ManifestSize size = size_of(*manifest);
    entries.push_back({{"checkpoint", dir}, {"good", true}, {"bytes", size.own + size.shared}});
    if (!wanted.as_json) {
      std::printf("%s: step %lld, %s, %s: every byte matches its checksum\n", dir.c_str(),
                  static_cast<long long>(manifest->step), counted(manifest->shards.size(), "shard").c_str(),
                  size_text(size.own + size.shared).c_str());
    }
  }
  if (wanted.as_json) print_json(entries);
  return exit_code;
}

int prune(const Wanted& wanted) {
  CkptPlace place;
  const auto dir = place.directory(wanted.place, wanted.keep);
  if (!dir) return ended_by(dir.error());
  const auto report = (*dir)->prune(!wanted.dry_run);
  if (!report) return ended_by(report.error());
  if (wanted.as_json) {
    json damaged = json::array();
    for (const store::PassedOver& each : report->damaged) {
      damaged.push_back({{"checkpoint", each.checkpoint}, {"why", each.why}});
    }
    print_json({{"removed", report->removed},
                {"damaged", damaged},
                {"trouble", report->trouble},
                {"dry_run", wanted.dry_run}});
  } else {
    for (const std::string& name : report->removed) {
      std::printf("%s: %s\n", name.c_str(), wanted.dry_run ? "would be removed" : "removed");
    }
    for (const store::PassedOver& each : report->damaged) {
      std::printf("%s: left, and not counted: %s\n", each.checkpoint.c_str(), printable(each.why).c_str());
    }
    if (report->removed.empty()) std::printf("nothing to remove\n");
  }
  if (report->trouble.empty()) return run::kExitDone;
  log_error(printable(report->trouble));
  return run::kExitFailed;
}

int told(const Wanted& wanted, const Result<CopiedCheckpoint>& copied, const char* what) {
  if (!copied) return ended_by(copied.error());
  if (wanted.as_json) {
    print_json({{"from", copied->from}, {"to", copied->to}, {"bytes", copied->bytes}});
  } else {
    std::printf("%s: %s, from %s%s\n", copied->to.c_str(), size_text(copied->bytes).c_str(), copied->from.c_str(),
                what);
  }
  return run::kExitDone;
}

int copy(const Wanted& wanted) {
  CkptPlace place;
  return told(wanted, place.copy(wanted.place, wanted.to, wanted.step), "");
}

int restore(const Wanted& wanted) {
  CkptPlace place;
  return told(wanted, place.restore(wanted.place, *wanted.step), "\na run in this directory resumes from it");
}

struct Command {
  CLI::App* app;
  std::shared_ptr<Wanted> wanted;
};

Command add(CLI::App& ckpt, const char* name, const char* what, const char* place, const std::string& footer,
            int (*act)(const Wanted&), int& exit_code) {
  Command command{ckpt.add_subcommand(name, what), std::make_shared<Wanted>()};
  command.app->add_option("place", command.wanted->place, place)->required()->type_name("PLACE");
  command.app->add_flag("--json", command.wanted->as_json, "for programs");
  command.app->footer(footer);
  command.app->callback([wanted = command.wanted, act, &exit_code] { exit_code = act(*wanted); });
  return command;
}

CLI::Option* add_step(const Command& command, const char* what) {
  return command.app->add_option("--step", command.wanted->step, what)->check(CLI::NonNegativeNumber);
}

constexpr const char* kDirectory = "a directory of checkpoints; also s3://bucket/prefix";
constexpr const char* kEither = "a directory of checkpoints, or one checkpoint in it; also s3://bucket/prefix";

}  // namespace

void add_ckpt(CLI::App& app, int& exit_code) {
  CLI::App* ckpt = app.add_subcommand("ckpt", "List, verify, copy and clean up checkpoints");
  ckpt->require_subcommand(1);
  ckpt->footer("Examples:\n  holdfast ckpt ls checkpoints\n  holdfast ckpt verify s3://bucket/run-7\n");
  add(*ckpt, "ls", "List the checkpoints of a directory; reads their manifests alone", kDirectory,
      "\"shared\" is what an incremental checkpoint uses of older ones.\nExample:\n  holdfast ckpt ls checkpoints\n",
      &list, exit_code);
  const Command verified = add(
      *ckpt, "verify", "Read every byte of committed checkpoints and check it; exit code 2 where one is bad", kEither,
      "Examples:\n  holdfast ckpt verify checkpoints\n  holdfast ckpt verify s3://bucket/run-7 --step 500\n", &verify,
      exit_code);
  add_step(verified, "only those of this step");
  const Command pruned = add(
      *ckpt, "prune", "Remove old checkpoints once the newest are found whole", kDirectory,
      "On a disk every byte of the newest is read back; on S3, which checked what it was sent, manifest and headers.\n"
      "Files that a kept checkpoint shares with a removed one stay. Damaged ones are left and not counted.\n"
      "Example:\n  holdfast ckpt prune checkpoints --keep 3 --dry-run\n",
      &prune, exit_code);
  pruned.app->add_option("--keep", pruned.wanted->keep, "how many that verify stay")
      ->required()
      ->check(CLI::PositiveNumber);
  pruned.app->add_flag("--dry-run", pruned.wanted->dry_run, "say what would be removed, and remove nothing");
  const Command restored = add(
      *ckpt, "restore", "Make the checkpoint of an earlier step the one that a run resumes from", kDirectory,
      "It is copied under a new epoch, each chunk checked; the newer ones stay until retention removes them. A run\n"
      "that still writes there is shut out.\nExample:\n  holdfast ckpt restore checkpoints --step 400\n",
      &restore, exit_code);
  add_step(restored, "the step to go back to")->required();
  const Command copied = add(
      *ckpt, "cp", "Copy a checkpoint into another directory, checking each chunk; there it needs no other", kEither,
      "Of a directory the newest that verifies is copied. It counts once every byte is there.\n"
      "Examples:\n  holdfast ckpt cp checkpoints s3://bucket/run-7\n  holdfast ckpt cp s3://bucket/run-7 checkpoints "
      "--step 500\n",
      &copy, exit_code);
  copied.app->add_option("dst", copied.wanted->to, "the directory of checkpoints to copy into")
      ->required()
      ->type_name("DST");
  add_step(copied, "the checkpoint of this step");
}

}  // namespace holdfast::app
