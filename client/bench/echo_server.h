// A gRPC server that returns the bytes it receives: the baseline for the daemon, including the payload.
#pragma once

#include <memory>
#include <string>

namespace saccade::client {

// Serves GRPCInferenceService/ModelInfer on a free port of this machine through the callback API. Parses and
// copies nothing.
class EchoServer {
 public:
  EchoServer();
  ~EchoServer();
  EchoServer(const EchoServer&) = delete;
  EchoServer& operator=(const EchoServer&) = delete;

  // HOST:PORT.
  const std::string& url() const { return url_; }

 private:
  class Running;
  std::unique_ptr<Running> running_;
  std::string url_;
};

}  // namespace saccade::client
