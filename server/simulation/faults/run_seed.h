// Runs the scenario of one seed: faults, recovery, drain, and the violations found.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/simulation/faults/scenario.h"
#include "server/simulation/ledger.h"

namespace saccade::server::simulation {

struct SeedResult {
  uint64_t trace_hash = 0;
  int64_t requests = 0;
  Tally tally;
  std::vector<std::string> violations;
};

SeedResult RunSeed(uint64_t seed, const Features& features = {});

// Leaves out every feature without which the seed still fails. REQUIRES: RunSeed(seed, features) has
// violations.
Features Shrink(uint64_t seed, Features features = {});

}  // namespace saccade::server::simulation
