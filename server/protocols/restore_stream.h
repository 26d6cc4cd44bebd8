// One call of saccade.v1.Vision.Restore: a volume comes in parts, and its answer goes in parts.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "saccade/v1/vision.pb.h"
#include "server/admission/admission.h"
#include "server/catalog/catalog.h"
#include "server/core/cancellation.h"
#include "server/core/request.h"
#include "server/engine/pipeline.h"
#include "server/protocols/retry_jitter.h"

namespace saccade::server {

// Owned by gRPC from the moment it is returned to it; deletes itself when the call is over. The volume is
// admitted when its header comes, before any of its bytes do, and is held once, as it is sent; the ticket is
// kept until the last of the answer is out.
class RestoreStream final : public grpc::ServerBidiReactor<v1::RestoreRequest, v1::RestoreResponse> {
 public:
  struct Call {
    // They must outlive it.
    Pipeline* pipeline;
    const Catalog* catalog;
    grpc::CallbackServerContext* context;
    RetryJitter* retry_jitter;
    absl::Time arrival;
    // A volume that has not come by then is given up: it holds room that others could use.
    absl::Duration max_upload;
    // Null if nobody wants to know.
    std::shared_ptr<CallRecord> record;
  };

  explicit RestoreStream(const Call& call);
  ~RestoreStream() override;

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override { cancellation_->Cancel(); }
  void OnDone() override { delete this; }

 private:
  // Whom the alarm may still call.
  struct Upload {
    absl::Mutex mutex;
    RestoreStream* stream ABSL_GUARDED_BY(mutex) = nullptr;
  };

  // No alarm comes any more. False if one did.
  bool EndUpload();
  absl::Status TakeHeader(const v1::RestoreHeader& header);
  absl::Status TakeData(const std::string& data);
  absl::Status Start();
  absl::Status MakeAnswer(const Response& response);
  void Answer(const absl::StatusOr<Response>& outcome);
  void TellProgress(double done);
  void End(const absl::Status& status);
  void Pump();
  bool WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Call call_;
  const std::shared_ptr<Cancellation> cancellation_ = std::make_shared<Cancellation>();

  const std::shared_ptr<Upload> upload_ = std::make_shared<Upload>();
  grpc::Alarm alarm_;

  // Of the reads alone, which come one after the other, until the request is on its way.
  v1::RestoreRequest part_;
  std::optional<v1::RestoreHeader> header_;
  std::optional<Request> request_;
  std::string volume_;
  std::shared_ptr<Admission::Ticket> ticket_;

  // Of the pipeline's thread alone, until the answer is on its way.
  v1::PredictResponse made_;
  std::string made_voxels_;

  // What is written comes from gRPC's threads and from the pipeline's; one part at a time.
  absl::Mutex mutex_;
  v1::RestoreResponse writing_part_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<double> progress_ ABSL_GUARDED_BY(mutex_);
  std::optional<v1::PredictResponse> answer_ ABSL_GUARDED_BY(mutex_);
  std::string voxels_ ABSL_GUARDED_BY(mutex_);
  size_t sent_ ABSL_GUARDED_BY(mutex_) = 0;
  // How the call ends, once nothing is left to be written; and whether it has.
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace saccade::server
