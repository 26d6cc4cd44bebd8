// Clients of the Open Inference Protocol that measure latencies: in a closed loop, or in an open loop at a
// fixed rate.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace saccade::client {

// The input of every request: one tensor of raw bytes.
struct InferInput {
  std::string model;
  std::string name = "image";
  std::string datatype = "FP32";
  std::vector<int64_t> shape;
  // The bytes of raw_input_contents.
  std::string bytes;
};

// Returns a serialised ModelInferRequest.
std::string InferRequest(const InferInput& input);

struct InferLoadResult {
  // One per answered call. In an open loop measured from when the call was due, so the time that a call
  // waited to be sent counts in full.
  std::vector<absl::Duration> latencies;
  int64_t failed = 0;
  // Number of all calls, answered or failed.
  int64_t sent = 0;
  // The first failure.
  absl::Status failure;
  // From the first call to the last response.
  absl::Duration elapsed;
};

// A call of an open loop that was answered, was rejected, or failed.
struct EndedCall {
  // Index of the connection.
  int client = 0;
  // Times since the start of the loop.
  absl::Duration due;
  absl::Duration sent;
  absl::Duration ended;
  absl::Status status;
};

struct OpenLoop {
  absl::Duration duration;
  // Calls per second, at random times (a Poisson process seeded by `seed`), on all connections in turn.
  double rate = 0;
  uint64_t seed = 1;
  // Deadline of each call, from when it is due.
  absl::Duration deadline = absl::Seconds(60);
  // Called for every call, on gRPC's threads, several at once; may be null.
  std::function<void(const EndedCall&)> ended = nullptr;
};

// A number of clients with one connection each. Every function blocks until its last call has ended.
class InferLoad {
 public:
  // `request` is serialised. Responses are not parsed.
  InferLoad(const std::string& url, const std::string& request, int clients);
  ~InferLoad();

  // Opens every connection with one call that does not count. Returns the error of a failed one.
  absl::Status Connect();
  // Each client sends its next request when the previous one was answered.
  InferLoadResult Closed(absl::Duration duration);
  // Sends calls at random times that do not depend on the responses.
  InferLoadResult Open(const OpenLoop& loop);

 private:
  class Client;
  class Tally;
  std::vector<std::unique_ptr<Client>> clients_;
};

}  // namespace saccade::client
