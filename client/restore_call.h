// The client's side of one Restore stream: first everything is sent, then the answer is put together.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <cstddef>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client.h"
#include "saccade/v1/vision.grpc.pb.h"

namespace saccade::client {

// Not thread-safe. An error of Send or Receive is the client's own: the context is then to be cancelled
// before Finish. That the daemon ended the stream is no such error; Finish tells why it did.
class RestoreCall {
 public:
  // Starts the call. Both must outlive it.
  RestoreCall(v1::Vision::Stub& stub, grpc::ClientContext& context);

  // The header, then the volume in parts of `part_bytes` at most. Stops early once the daemon has ended the
  // stream.
  absl::Status Send(const v1::RestoreHeader& header, const VolumeSource& volume, size_t part_bytes);

  // Until the daemon ends the stream. `progress` may be empty.
  absl::Status Receive(const RestoreProgress& progress);

  grpc::Status Finish();

  // Once, after Finish was OK. INTERNAL if the daemon sent less than it announced.
  absl::StatusOr<Restoration> TakeAnswer();

 private:
  absl::Status Announce(const v1::PredictResponse& response);
  absl::Status Append(absl::string_view voxels);

  const std::unique_ptr<grpc::ClientReaderWriter<v1::RestoreRequest, v1::RestoreResponse>> stream_;
  std::optional<Restoration> answer_;
};

}  // namespace saccade::client
