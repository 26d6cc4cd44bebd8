// Options of the catalog and of the models that it loads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/catalog/core_contention.h"
#include "server/catalog/measured_kinds_text.h"
#include "server/catalog/memory_nodes.h"
#include "server/catalog/model_control.h"
#include "server/engine/model_permissions.h"

namespace saccade::server {

class Catalog;
class ResponseCache;
struct Ensemble;

// Checks an ensemble before it serves: OK, or UNAVAILABLE with the reason why the catalog's models cannot run
// its steps. Called on the catalog's thread.
using EnsembleChecker = std::function<absl::Status(const Ensemble& ensemble, const Catalog& catalog)>;

struct CatalogOptions {
  std::vector<std::string> repositories = {};
  ModelControl control = ModelControl::kNone;
  // How often the repositories are scanned. With kPoll, a change is applied once two successive scans have
  // seen it unchanged.
  absl::Duration poll_interval = absl::Seconds(15);
  // Each wait between two scans is longer by a random time of up to this.
  absl::Duration poll_jitter = absl::ZeroDuration();
  // kExplicit: models to load at start; "*" stands for all.
  std::vector<std::string> load_at_start = {};
  // kExplicit: requests load the other models of the repositories.
  bool load_on_demand = false;
  // A model that requests loaded is unloaded when it was not used for so long.
  absl::Duration idle_unload = absl::InfiniteDuration();
  // Memory that loaded models may hold on the CPU; 0 means no limit.
  int64_t max_model_bytes = 0;
  // ReadOptions::complete.
  bool complete_configurations = true;
  // How long Unload() waits for requests in flight before it fails with DEADLINE_EXCEEDED.
  absl::Duration unload_timeout = absl::Seconds(30);
  // Used where a model's own configuration sets none.
  int64_t default_max_queue_size = 256;
  // Cores that forward passes may keep busy, all models together. At least 1.
  int cores = 1;
  // The nodes of the processors that may be used; models take turns on them. Fewer than two: passes run
  // anywhere.
  std::vector<MemoryNode> nodes = {};
  // Cores used by one forward pass; 0 divides `cores` by the number of the model's instances.
  int threads_per_instance = 0;
  // Time limit of a model's warm-up after the smallest and the largest batch of each bucket.
  absl::Duration warm_up = absl::Seconds(5);
  // Where what was measured of models is kept for the next start; empty keeps it in memory alone.
  std::string state_folder = {};
  MeasuredOn measured_on = {};
  ModelPermissions permissions = {};
  // Number of GPUs.
  int gpus = 0;
  // Holds the answers of models that configure response_cache; may be null. Must outlive the catalog.
  ResponseCache* response_cache = nullptr;
  // What processes have used of the cores since the last call (CoreUseMeter::Measure). Called by Sweep(), a
  // call at a time. Without it, the threads of passes are tried at load only.
  std::function<std::optional<CoreUse>()> core_use = nullptr;
  // Without it, ensembles cannot be loaded.
  EnsembleChecker check_ensemble = nullptr;
};

}  // namespace saccade::server
