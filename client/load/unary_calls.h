// Calls of the daemon's Predict or ServerLive for a load, and single ones.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/load/load.h"

namespace saccade::client {

enum class Method { kPredict, kServerLive };

// Returns a serialised saccade.v1.PredictRequest with `width` x `height` raw pixels.
std::string RawRequest(const std::string& model, int width, int height);

// Makes one blocking call; returns the serialised response.
absl::StatusOr<std::string> CallOnce(const std::string& url, Method method, const std::string& request);

// Sends the same request with every call of a closed loop, and reads the daemon's timings from the responses
// of Predict. Each connection is a TCP connection.
class UnaryCalls {
 public:
  // `request` is a serialised PredictRequest; empty for ServerLive.
  UnaryCalls(const std::string& url, Method method, const std::string& request, int connections);
  // REQUIRES: no call is in flight.
  ~UnaryCalls();

  // Returns what starts a call, for a closed loop: its connection must have no call in flight. This object
  // must outlive it.
  StartCall starter();

 private:
  class Connection;
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace saccade::client
