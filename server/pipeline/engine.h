// What computes a served model's batches: one of our networks, or somebody's program. Everything else about a
// request's way is the same for both.
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
#include "models/description.h"
#include "server/batching/batch_task.h"
#include "server/core/clock.h"
#include "server/core/request.h"
#include "server/decode/picture_header.h"
#include "server/metrics/metrics.h"
#include "server/pipeline/pass_end.h"
#include "server/pipeline/predict_call.h"
#include "server/repository/repository.h"

namespace saccade::server {

// Thread-safe.
class Engine {
 public:
  struct WarmUpOptions {
    Clock* clock;
    // How long it may go on beyond the smallest and the largest batch of each bucket.
    absl::Duration at_most;
    // Told what a pass took that was not the first of its kind.
    std::function<void(int64_t bucket, int64_t batch_size, absl::Duration took)> learn;
  };

  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  virtual ~Engine() = default;

  virtual const models::Description& description() const = 0;

  // What a request's items are called in an error: "pictures", "rows".
  virtual const char* items_name() const = 0;

  // What can be known of a request's input before it costs anything. INVALID_ARGUMENT in the client's words.
  virtual absl::Status Check(const Request& request) const = 0;

  // Makes of the input what Compute takes, and charges the call's ticket for it. Takes its time unless the
  // request is ready (IsReady): to be called on the decode pool then. REQUIRES: Check was OK. A call that
  // failed is still to be refused.
  virtual absl::Status Prepare(PredictCall& call, const DecodeLimits& limits, Clock* clock) const = 0;

  // A pass over so many items like those of the warm-up's first bucket, to be computed again and again. Null
  // if what an item is like is for requests to say. Not to outlive the engine.
  virtual std::function<absl::Status()> WarmUpPass(int64_t size) const = 0;

  // Computes batches as requests will bring them. Blocks, computing on this thread.
  virtual absl::Status WarmUp(const WarmUpOptions& options) const = 0;

  // Ends every share of the batch, as ComputeShares does. `advanced` is called whenever a long pass has come
  // further. REQUIRES: every task is a CallShare, all of one bucket.
  virtual PassEnd Compute(std::vector<std::unique_ptr<BatchTask>> batch, Clock* clock, ModelMetrics* metrics,
                          const std::function<void()>& advanced) const = 0;
};

struct EngineOptions {
  ModelVersion version;
  // Whether programs, which are code of whoever wrote them, may be loaded.
  bool allow_executable_models = false;
  // Where it computes; none: the CPU.
  std::optional<int> gpu = std::nullopt;
  // So many passes at the same time.
  int instances = 1;
};

// Reads the weights or the program. Blocks; called on one thread. INVALID_ARGUMENT for files and
// configurations that are wrong, FAILED_PRECONDITION for a program that is not allowed. `settings` must
// outlive the engine.
absl::StatusOr<std::unique_ptr<Engine>> LoadEngine(const ModelSettings& settings,
                                                   const EngineOptions& options);

// What of LoadEngine's errors the configuration alone tells. REQUIRES: it is no ensemble.
absl::Status CheckEngine(const ModelSettings& settings, bool allow_executable_models);

}  // namespace saccade::server
