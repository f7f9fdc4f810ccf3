// Names of things that must not be mixed up: ranks, epochs, steps, workers.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace holdfast {

/// Place in the process group, 0 .. world_size - 1. Survives the death of the process that holds it.
using Rank = std::uint32_t;
/// Generation of the process group. Grows by one at every regroup; nothing of an older one is accepted.
using Epoch = std::uint64_t;
/// Training step, from 0. `applied` counts: a state that has applied n steps is about to run step n.
using Step = std::int64_t;
/// One worker process, numbered by the agent at spawn and never reused within a run.
using WorkerId = std::uint64_t;
/// Place of a machine in the run. One machine: 0.
using NodeId = std::uint32_t;

constexpr Step kNoStep = -1;

}  // namespace holdfast
