// Clients that send their next request when the previous one was answered.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/types.h"

namespace saccade::client {

enum class Method { kPredict, kServerLive };

struct Sample {
  absl::Duration latency;
  // The daemon's own measurements; zero for ServerLive.
  Timings timings;
};

struct Measurement {
  std::vector<Sample> samples;
  // From the first request to the last response, summed over all runs.
  absl::Duration elapsed;
};

// Returns a serialised saccade.v1.PredictRequest with `width` x `height` raw pixels.
std::string RawRequest(const std::string& model, int width, int height);

// Makes one blocking call; returns the serialised response.
absl::StatusOr<std::string> CallOnce(const std::string& url, Method method, const std::string& request);

// Not thread-safe. Each client has a connection of its own, as separate processes would.
class ClosedLoop {
 public:
  ClosedLoop(const std::string& url, Method method, const std::string& request, int clients);
  ~ClosedLoop();

  // Blocks for `duration` and until the last response; adds to `measurement`. Returns the status of a failed
  // call, if any, which ends its client's run.
  absl::Status Run(absl::Duration duration, Measurement& measurement);

 private:
  class Caller;
  std::vector<std::unique_ptr<Caller>> callers_;
};

}  // namespace saccade::client
