// The scenarios of docs/benchmarks/fleet.md. Each adds a section to the report.
#pragma once

#include <string>
#include <vector>

#include "server/simulation/bench/sections.h"
#include "server/simulation/fleet/summary.h"

namespace saccade::server::simulation {

struct FleetBenchOptions {
  int replicas = 1000;
  uint64_t seed = 1;
  // Folder for the plots; empty for no plots.
  std::string folder = {};
};

using FleetSection = std::function<void(const FleetBenchOptions&, Report&)>;
// By name, in the order of the report.
std::vector<std::pair<std::string, FleetSection>> FleetSections();

// Requests per second that one replica can answer in time.
double CapacityOf(const FleetOptions& options);

// The base of all scenarios: the shipped defaults, offered `load` times what the replicas can do.
FleetOptions BasicFleet(const FleetBenchOptions& options, double load, Nanos until);

void AddSteady(const FleetBenchOptions& options, Report& report);
void AddRetryStorm(const FleetBenchOptions& options, Report& report);
void AddAutoscaling(const FleetBenchOptions& options, Report& report);
void AddSlowReplicas(const FleetBenchOptions& options, Report& report);
void AddBadVersion(const FleetBenchOptions& options, Report& report);
void AddZoneLoss(const FleetBenchOptions& options, Report& report);

}  // namespace saccade::server::simulation
