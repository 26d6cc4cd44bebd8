// The engine that computes a served model's batches: one of our networks, or a user's program. The rest of a
// request's path is the same for both.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "models/api/description.h"
#include "models/api/target.h"
#include "server/core/clock.h"
#include "server/core/request.h"
#include "server/decode/decoder.h"
#include "server/engine/call_share.h"
#include "server/engine/model_permissions.h"
#include "server/engine/pass_end.h"
#include "server/engine/predict_call.h"
#include "server/metrics/metrics.h"
#include "server/repository/checksums.h"
#include "server/repository/repository.h"

namespace saccade::server {

// Thread-safe.
class Engine {
 public:
  struct WarmUpOptions {
    Clock* clock;
    // Time limit for batches other than the smallest and the largest of each bucket.
    absl::Duration max_time;
    // Called with the time of a pass. The first pass of a kind is only reported if it was long
    // (kLongWarmUpPass).
    std::function<void(int64_t bucket, int64_t batch_size, absl::Duration took)> learn;
    // Called with the number of batches computed so far and the number planned, some of which the time limit
    // may leave out. May be null.
    std::function<void(int64_t done, int64_t of)> advanced = nullptr;
  };

  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  virtual ~Engine() = default;

  virtual const models::Description& description() const = 0;

  // The word for a request's items in error messages: "pictures", "rows".
  virtual const char* items_name() const = 0;

  // Checks that cost nothing. INVALID_ARGUMENT describes the problem in terms of the client's request.
  virtual absl::Status Check(const Request& request) const = 0;

  // Converts the call's input to what Compute() takes, and charges the call's ticket for it. Expensive unless
  // IsReady(request); then run it on the decode pool. REQUIRES: Check() returned OK. On error the caller must
  // still refuse the call.
  virtual absl::Status Prepare(PredictCall& call, const Decoder& decoder, Clock* clock) const = 0;

  // A function that computes a pass over `size` items of the warm-up's first bucket and may be called
  // repeatedly. Null if only requests determine the items' shape, or if the batch is too large. Must not
  // outlive the engine.
  virtual std::function<absl::Status()> WarmUpPass(int64_t size) const = 0;

  // Computes batches like those of requests. Blocks, and computes on this thread.
  virtual absl::Status WarmUp(const WarmUpOptions& options) const = 0;

  // Computes an item of zeros once, and returns warnings for the author of the configuration. Empty if there
  // is nothing to report, if only requests determine the item's shape, or if loading has checked it. Blocks.
  virtual std::vector<std::string> Try() const { return {}; }

  // Ends every share of the batch except those in PassEnd::failed, like ComputeShares. `advanced` is called
  // when a long pass makes progress. REQUIRES: all shares are of one bucket.
  virtual PassEnd Compute(Shares batch, Clock* clock, ModelMetrics* metrics,
                          const std::function<void()>& advanced) const = 0;
};

struct EngineOptions {
  ModelVersion version;
  ModelPermissions permissions = {};
  // The GPU to compute on; nullopt for the CPU.
  std::optional<int> gpu = std::nullopt;
  // The number of passes that may run at the same time.
  int instances = 1;
  // In place of the option `precision` of our own networks.
  std::optional<models::Precision> precision = std::nullopt;
  // The checksum of a file of weights.
  FileSummer file_sum = FileSum;
};

// The weights file with which a version of one of our own networks computes in this precision.
const std::string& WeightsFor(const ModelVersion& version, models::Precision precision);

// Reads the weights or the program. Blocks; called on one thread. INVALID_ARGUMENT for invalid files or
// configurations, FAILED_PRECONDITION if `permissions` forbid the model, RESOURCE_EXHAUSTED if memory is
// insufficient. `settings` must outlive the engine.
absl::StatusOr<std::unique_ptr<Engine>> LoadEngine(const ModelSettings& settings,
                                                   const EngineOptions& options);

// The errors of LoadEngine() that follow from the configuration alone. REQUIRES: the model is not an
// ensemble.
absl::Status CheckEngine(const ModelSettings& settings, const ModelPermissions& permissions);

}  // namespace saccade::server
