// The client's side of one Restore stream: sends everything, then assembles the response.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <cstddef>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/client.h"
#include "saccade/v1/vision.grpc.pb.h"

namespace saccade::client {

// Not thread-safe. An error of Send or Receive is the client's own; cancel the context before Finish in that
// case. If the daemon ends the stream early, Send and Receive return OK and Finish returns the reason.
class RestoreCall {
 public:
  // Starts the call. `stub` and `context` must outlive it.
  RestoreCall(v1::Vision::Stub& stub, grpc::ClientContext& context);

  // Sends the header, then the volume in parts of at most `part_bytes`. Blocks while the daemon does not
  // read. Stops early if the daemon has ended the stream.
  absl::Status Send(const v1::RestoreHeader& header, const VolumeSource& volume, size_t part_bytes);

  // Receives until the daemon ends the stream. `progress` may be empty.
  absl::Status Receive(const RestoreProgress& progress);

  grpc::Status Finish();

  // Call once, after Finish was OK. INTERNAL if the daemon sent less than it announced.
  absl::StatusOr<Restoration> TakeAnswer();

 private:
  absl::Status Announce(const v1::PredictResponse& response);
  absl::Status Append(absl::string_view voxels);

  const std::unique_ptr<grpc::ClientReaderWriter<v1::RestoreRequest, v1::RestoreResponse>> stream_;
  std::optional<Restoration> answer_;
};

}  // namespace saccade::client
