// Clients of the Open Inference Protocol that measure: closed loop, or open at a fixed rate.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace saccade::client {

// What is sent again and again: one tensor of raw bytes.
struct InferInput {
  std::string model;
  std::string name = "image";
  std::string datatype = "FP32";
  std::vector<int64_t> shape;
  // As raw_input_contents has them.
  std::string bytes;
};

// A serialised ModelInferRequest.
std::string InferRequest(const InferInput& input);

struct LoadResult {
  // Of calls that were answered; of an open loop from the moment when the call was due, so that calls that
  // had to wait to be sent count in full.
  std::vector<absl::Duration> latencies;
  int64_t failed = 0;
  // All of them: these, and those that failed.
  int64_t sent = 0;
  // Why the first one did.
  absl::Status failure;
  // From the first call to the last answer.
  absl::Duration elapsed;
};

// A call of an open loop that was answered, refused or given up.
struct EndedCall {
  // Which connection it was sent on.
  int client = 0;
  // Since the loop began.
  absl::Duration due;
  absl::Duration sent;
  absl::Duration ended;
  absl::Status status;
};

struct OpenLoop {
  absl::Duration duration;
  // Calls a second on all connections in turn, at random moments (Poisson, by `seed`).
  double rate = 0;
  uint64_t seed = 1;
  // Of each call, from when it is due.
  absl::Duration deadline = absl::Seconds(60);
  // Told of every call, on gRPC's threads, several at once; may be null.
  std::function<void(const EndedCall&)> ended = nullptr;
};

// Blocking, with connections of their own for every run; each is opened by one call that does not count.
// UNAVAILABLE and the like if that one fails.
class InferLoad {
 public:
  // `request` is serialised. Nothing of an answer is parsed.
  InferLoad(const std::string& url, const std::string& request, int clients);
  ~InferLoad();

  absl::Status Connect();
  // Each client sends its next request when the last one was answered.
  LoadResult Closed(absl::Duration duration);
  LoadResult Open(const OpenLoop& loop);

 private:
  class Client;
  class Tally;
  std::vector<std::unique_ptr<Client>> clients_;
};

}  // namespace saccade::client
