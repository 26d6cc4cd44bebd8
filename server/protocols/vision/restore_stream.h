// One call of saccade.v1.Vision.Restore: a volume arrives in parts, and its answer is sent in parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "saccade/v1/vision.pb.h"
#include "server/catalog/catalog.h"
#include "server/core/cancellation.h"
#include "server/core/clock.h"
#include "server/core/request.h"
#include "server/engine/pipeline.h"
#include "server/net/work_pool.h"
#include "server/protocols/call_scope.h"
#include "server/protocols/driven_call.h"
#include "server/protocols/retry_jitter.h"
#include "server/protocols/vision/uploads.h"
#include "server/protocols/vision/volume_upload.h"

namespace saccade::server {

// A header whose volume would not fit is refused at once. The volume's memory is charged as it arrives, and
// held once, as it is sent; the request is admitted, and counts as one in flight, when all of it has come.
class RestoreStream final : public DrivenCall {
 public:
  struct Server {
    // They must outlive the stream.
    Pipeline* pipeline;
    const Catalog* catalog;
    Clock* clock;
    RetryJitter* retry_jitter;
    Uploads* uploads;
    // Reads large parts. Null: the thread that received them does.
    WorkPool* pool = nullptr;
    // The time a volume may take to arrive.
    absl::Duration max_upload;
    // A volume must arrive at this rate, measured after the grace.
    int64_t min_bytes_per_second;
    absl::Duration grace;
  };

  explicit RestoreStream(const Server& server) : server_(server) {}
  ~RestoreStream() override { server_.uploads->Remove(this); }

  void OnMessage(BytePieces message) override;
  void OnHalfClose() override;
  void OnSent(bool ok) override;
  void OnCancel() override;

  // Thread-safe. End the call if its volume has not arrived completely; else they do nothing.
  void EndIfLate(absl::Time now);
  void EndUpload(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void OnArrival() override;
  Action NextAction() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Network thread, or the pool, one part after the other: the request.
  void Take(const BytePieces& message) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndTaking(bool reads_on) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns whether the next message may be read.
  bool TakeMessage(const BytePieces& message);
  absl::Status TakePart(const BytePieces& message);
  absl::Status TakeHeader(const v1::RestoreHeader& header);
  absl::StatusOr<Request> ReadHeader(const v1::RestoreHeader& header);
  absl::Status TakeData(std::string_view data);
  absl::Status CheckComplete() const;
  // The pipeline's callback keeps `answerer`.
  absl::Status Start(std::shared_ptr<const void> answerer);
  bool IsUploading() ABSL_LOCKS_EXCLUDED(mutex_);
  bool StopUploading() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status LatenessAt(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // The pipeline's threads: the answer.
  void TellProgress(double done);
  absl::Status MakeAnswer(const Response& response);
  void Answer(const absl::StatusOr<Response>& outcome);

  // Ends the call if it has no end: the pipeline has dropped it, or its answer could not be made. Does not
  // throw.
  void EndUnanswered() ABSL_LOCKS_EXCLUDED(mutex_);
  void End(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // Drops what was not sent, because the client is gone.
  void DropAnswer() ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<BytePieces> NextPart() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Server server_;
  // Set when the call arrives.
  std::optional<CallScope> scope_;
  const std::shared_ptr<Cancellation> cancellation_ = std::make_shared<Cancellation>();

  // Used by the thread that reads a part until the request is given to the pipeline, then by the pipeline.
  std::optional<v1::RestoreHeader> header_;
  std::optional<Request> request_;
  std::optional<VolumeUpload> volume_;

  // Used by the pipeline's thread until the answer is given to NextAction().
  v1::PredictResponse made_;
  std::shared_ptr<std::string> made_voxels_;

  bool uploading_ ABSL_GUARDED_BY(mutex_) = true;
  // A message is being read, perhaps on the pool. The call must not end meanwhile.
  bool taking_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t received_ ABSL_GUARDED_BY(mutex_) = 0;
  // What the header said, for the log.
  std::string model_ ABSL_GUARDED_BY(mutex_);
  std::string id_ ABSL_GUARDED_BY(mutex_);
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool sending_ ABSL_GUARDED_BY(mutex_) = false;
  // The client cannot receive anything any more.
  bool is_gone_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<double> progress_ ABSL_GUARDED_BY(mutex_);
  std::optional<v1::PredictResponse> answer_ ABSL_GUARDED_BY(mutex_);
  // Shared with the parts that are being sent. Null if there is no answer.
  std::shared_ptr<const std::string> voxels_ ABSL_GUARDED_BY(mutex_);
  size_t sent_ ABSL_GUARDED_BY(mutex_) = 0;
  // How the call ends, once nothing is left to be sent.
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
