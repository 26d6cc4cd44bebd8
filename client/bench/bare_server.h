// A minimal gRPC server in C++: the baseline for the daemon.
#pragma once

#include <memory>
#include <string>

namespace saccade::client {

// Serves Vision/Predict and GRPCInferenceService/ServerLive on a free port of this machine through the
// callback API. Does not parse requests and responds with fixed bytes.
class BareServer {
 public:
  BareServer(const std::string& predict_answer, const std::string& live_answer);
  ~BareServer();
  BareServer(const BareServer&) = delete;
  BareServer& operator=(const BareServer&) = delete;

  // HOST:PORT.
  const std::string& url() const { return url_; }

 private:
  class Services;
  std::unique_ptr<Services> services_;
  std::string url_;
};

}  // namespace saccade::client
