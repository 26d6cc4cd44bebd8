// Calls of the Open Inference Protocol's ModelInfer for a load.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/load/load.h"

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

// Sends the same request with every call; responses are not parsed. Each connection is a TCP connection.
class InferCalls {
 public:
  // `request` is serialised.
  InferCalls(const std::string& url, const std::string& request, int connections);
  // REQUIRES: no call is in flight.
  ~InferCalls();

  // Returns what starts a call, which has `timeout` from when it is due. This object must outlive it.
  StartCall starter(absl::Duration timeout = absl::Seconds(60));

 private:
  class Connection;
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace saccade::client
