// Runs the scenario of one seed: faults, recovery, drain, and the violations found.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/simulation/faults/group_policy.h"
#include "server/simulation/faults/scenario.h"
#include "server/simulation/ledger.h"

namespace saccade::server::simulation {

struct SeedResult {
  uint64_t trace_hash = 0;
  int64_t requests = 0;
  Tally tally;
  // See GroupPolicy::tiny and Invariants::considered.
  int64_t tiny = 0;
  int64_t considered = 0;
  // Models that requests loaded.
  int64_t loads = 0;
  std::vector<std::string> violations;
};

// `defect` is what a test builds in.
SeedResult RunSeed(uint64_t seed, const Features& features = {}, Defect defect = Defect::kNone);

// Leaves out every feature without which the seed still fails. REQUIRES: RunSeed(seed, features) has
// violations.
Features Shrink(uint64_t seed, Features features = {});

}  // namespace saccade::server::simulation
