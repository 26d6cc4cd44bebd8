// Clients that send their next request when the last one was answered.
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
  // The daemon's own account; zero for ServerLive.
  Timings timings;
};

struct Measurement {
  std::vector<Sample> samples;
  // From the first request to the last answer, all runs together.
  absl::Duration elapsed;
};

// Serialised saccade.v1.PredictRequest of `width` x `height` raw pixels.
std::string RawRequest(const std::string& model, int width, int height);

// One call, blocking; returns the serialised answer.
absl::StatusOr<std::string> CallOnce(const std::string& url, Method method, const std::string& request);

// Not thread-safe. Each client has a connection of its own, as separate processes would.
class ClosedLoop {
 public:
  ClosedLoop(const std::string& url, Method method, const std::string& request, int clients);
  ~ClosedLoop();

  // Blocks for `duration` and until the last answer is there; adds to `measurement`. The first call that
  // fails ends the run with its status.
  absl::Status Run(absl::Duration duration, Measurement& measurement);

 private:
  class Caller;
  std::vector<std::unique_ptr<Caller>> callers_;
};

}  // namespace saccade::client
