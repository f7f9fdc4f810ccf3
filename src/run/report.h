// The record of a run, for people and programs.
#pragma once

#include <string>
#include <vector>

#include "run/coordinator.h"
#include "run/injector.h"
#include "telemetry/goodput.h"

namespace holdfast::run {

struct PassedOverCheckpoint {
  std::string checkpoint;
  std::string why;
};

struct RunRecord {
  std::string run_id;
  std::uint32_t world_size = 0;
  int exit_code = 0;
  std::string why;
  world::Nanos began_at{}, ended_at{};
  Step first_step = 0;  ///< where this run's history begins (above 0: it resumed)
  Step steps = 0;       ///< completed by all, counted from step 0
  std::uint64_t steps_lost = 0, steps_redone = 0;
  double ettr = 0;
  std::array<world::Nanos, telemetry::kBuckets> goodput{};
  Epoch epochs = 0;
  int restarts = 0;
  std::vector<Fault> faults;
  std::vector<Injected> injected;
  std::vector<PassedOverCheckpoint> passed_over;
};

/// The faults that answer planned fault `index`, one for each of its ranks, by time: indices into `faults`. Empty where
/// a rank of it was missed.
std::vector<std::size_t> answering_faults(const RunRecord& record, std::size_t index);
/// What a planned fault should be called.
FaultKind expected_kind(PlannedKind kind);

/// One JSON object; docs/format-report.md.
std::string report_json(const RunRecord& record);
/// "rank 2 killed (ended by signal 9) at step 41: seen after 0.4 ms, next step after 92 ms". `began_at`: where known.
std::string fault_line(const Fault& fault, std::optional<world::Nanos> began_at);

}  // namespace holdfast::run
