// What a daemon has measured of a model, as `saccade tune` needs it: asked of the daemon, or read from a file
// that an earlier run saved.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cpp/client.h"
#include "client/cpp/types.h"
#include "server/simulation/sizing/estimate.h"

namespace saccade::client {

struct Measurement {
  std::string model;
  int64_t version = 0;
  std::string precision;
  ModelTiming timing;
  // Bytes of a decoded item; 0 if the model's inputs have no common size.
  int64_t item_bytes = 0;
  // Mean time of decoding a request; zero if there was no request yet.
  absl::Duration decode;
  // Median time of an empty call to the daemon.
  absl::Duration round_trip;
};

// Asks the daemon. Blocks. Errors are those of the calls, FAILED_PRECONDITION if the model is not ready or
// has no passes, and those of CheckMeasurement.
absl::StatusOr<Measurement> Measure(Client& client, const std::string& model, int64_t version);

// INVALID_ARGUMENT says which number is missing or impossible; FAILED_PRECONDITION says how to get latencies
// if there are none.
absl::Status CheckMeasurement(const Measurement& measurement);

// The form of --save and --latencies.
std::string ToJsonText(const Measurement& measurement);
// INVALID_ARGUMENT for text that ToJsonText would not have written.
absl::StatusOr<Measurement> FromJsonText(absl::string_view text);

// REQUIRES: CheckMeasurement(measurement).ok().
server::simulation::MeasuredModel ToModel(const Measurement& measurement);

// The share of each bucket in the items that were computed; equal shares if there were none.
std::vector<double> MixOf(const Measurement& measurement);

// "800x1344", or the number of a bucket without a name.
std::string NameOf(const BucketTiming& bucket);

}  // namespace saccade::client
