// The same methods on gRPC's own C++ server, to compare with ours.
#pragma once

#include <grpcpp/server.h>

#include <memory>
#include <vector>

#include "server/grpc/call.h"

namespace saccade::server {

// Thread-safe.
class GrpcRuntime {
 public:
  // Serves `methods` on a free port of 127.0.0.1, without TLS. Null if there is none.
  static std::unique_ptr<GrpcRuntime> Start(std::vector<CallMethod> methods, int max_message_bytes);
  // Cancels the calls that are open, and blocks until they are finished.
  ~GrpcRuntime();

  int port() const { return port_; }

 private:
  class Service;

  GrpcRuntime();

  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

}  // namespace saccade::server
