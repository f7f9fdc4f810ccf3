#include "app/live_table.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace holdfast::app {
namespace {

LiveView view_with_faults(int count) {
  LiveView view{.mode = run::Mode::Running, .record = {}};
  view.record.world_size = 4;
  view.record.steps = 17;
  for (int id = 0; id < count; ++id) {
    run::Fault fault;
    fault.id = id;
    fault.kind = run::FaultKind::Killed;
    fault.culprits = {static_cast<Rank>(id % 4)};
    fault.seen = "ended by signal 9";
    view.record.faults.push_back(fault);
  }
  return view;
}

TEST(LiveTable, ShowsTheRunAndItsLastFaults) {
  const std::string table = live_table(view_with_faults(5), 200);
  EXPECT_NE(table.find("step 17  training  4 ranks"), std::string::npos);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 4);
  EXPECT_EQ(table.find("rank 1 killed"), std::string::npos);
  EXPECT_NE(table.find("rank 2 killed"), std::string::npos);
}

TEST(LiveTable, KeepsToTheWidth) {
  const std::string table = live_table(view_with_faults(1), 20);
  for (std::size_t at = 0; at < table.size();) {
    const std::size_t end = table.find('\n', at);
    EXPECT_LE(end - at, 20u);
    at = end + 1;
  }
}

}  // namespace
}  // namespace holdfast::app
