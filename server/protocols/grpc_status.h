// absl::Status as gRPC sends it.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace saccade::server {

// The canonical codes have the same numbers on both sides.
inline grpc::Status ToGrpcStatus(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

}  // namespace saccade::server
