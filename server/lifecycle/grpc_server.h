// The gRPC listener with its limits and services.
#pragma once

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace saccade::server {

class GrpcServer {
 public:
  struct Options {
    std::string host;
    // 0 picks a free port.
    int port = 0;
    int64_t max_message_bytes = 0;
    // The port's TLS and token checks.
    std::shared_ptr<grpc::ServerCredentials> credentials;
    // Channel arguments by gRPC's names, which override the defaults set here.
    std::map<std::string, int> arguments = {};
  };

  // Serves `services`, which must outlive the server, and health and reflection. ALREADY_EXISTS if the port
  // is in use.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(const Options& options,
                                                           const std::vector<grpc::Service*>& services);

  int port() const { return port_; }
  grpc::HealthCheckServiceInterface* health() { return server_->GetHealthCheckService(); }

  // Rejects new calls, waits up to `grace` for running ones, then cancels the rest: streams that watch the
  // health never end by themselves. Blocks.
  void Stop(absl::Duration grace);

 private:
  GrpcServer(std::shared_ptr<grpc::ServerCredentials> credentials, std::unique_ptr<grpc::Server> server,
             int port)
      : credentials_(std::move(credentials)), server_(std::move(server)), port_(port) {}

  const std::shared_ptr<grpc::ServerCredentials> credentials_;
  std::unique_ptr<grpc::Server> server_;
  const int port_;
};

}  // namespace saccade::server
