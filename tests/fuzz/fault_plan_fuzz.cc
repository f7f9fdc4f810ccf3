// Fuzzes the reader of fault plans: a plan that is accepted names only ranks that exist.
#include "base/check.h"
#include "run/fault_plan.h"

using namespace holdfast;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr Rank kRanks = 4;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto plan = run::parse_fault_plan("plan", text, kRanks);
  if (!plan) return 0;
  for (const run::PlannedFault& fault : *plan) {
    CHECK(fault.step >= 0 && fault.seconds > 0);
    for (Rank rank : fault.ranks) CHECK(rank < kRanks);
  }
  return 0;
}
