#include "client/cpp/rpc_status.h"

#include <string>

#include "absl/strings/cord.h"
#include "client/cpp/status.h"

namespace saccade::client {

absl::Status FromRpcStatus(const grpc::Status& status, const grpc::ClientContext& context) {
  if (status.ok()) return absl::OkStatus();
  // absl and gRPC use the same numbers for the canonical codes.
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  if (!status.error_details().empty()) {
    result.SetPayload(kDetailsPayload, absl::Cord(status.error_details()));
  }
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto pushback = trailers.find("grpc-retry-pushback-ms");
  if (pushback != trailers.end()) {
    SetRetryAfter(result, absl::string_view(pushback->second.data(), pushback->second.size()));
  }
  return result;
}

}  // namespace saccade::client
