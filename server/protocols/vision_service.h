// saccade.v1.Vision on gRPC's callback API.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "saccade/v1/vision.grpc.pb.h"
#include "server/catalog/catalog.h"
#include "server/core/cancellation.h"
#include "server/core/clock.h"
#include "server/engine/pipeline.h"
#include "server/protocols/retry_jitter.h"
#include "server/protocols/slow_readers.h"

namespace saccade::server {

// PredictStream has its messages as gRPC delivers them: one that cannot be parsed is to fail alone.
using RawVisionService =
    v1::Vision::WithCallbackMethod_Predict<v1::Vision::WithRawCallbackMethod_PredictStream<
        v1::Vision::WithCallbackMethod_Restore<v1::Vision::WithCallbackMethod_ListModels<
            v1::Vision::WithCallbackMethod_GetModel<v1::Vision::Service>>>>>;

// Thread-safe; no call blocks.
class VisionService final : public RawVisionService {
 public:
  struct Options {
    // Larger answers become errors that say so.
    int64_t max_message_bytes;
    // Of one PredictStream that may be in flight.
    int64_t max_stream_requests;
    // How long a streamed volume may take to come.
    absl::Duration upload_timeout;
    // Of the hints to those who are refused.
    RetryJitter* retry_jitter;
    SlowReaders* slow_readers;
  };

  // What a transport tells of a call beside its message.
  struct Caller {
    // What metrics count it under.
    std::string_view protocol;
    std::string client;
    absl::Time arrival;
    absl::Time deadline = absl::InfiniteFuture();
    std::shared_ptr<Cancellation> cancellation;
    // Null if nobody wants to know; who calls ends it.
    std::shared_ptr<CallRecord> record = nullptr;
  };
  // `charge`, if there is one, is to be kept until the answer is sent.
  using Answered =
      std::function<void(const absl::Status& status, std::shared_ptr<const AnswerCharge> charge)>;

  // Everything must outlive the service.
  VisionService(const Options& options, Pipeline* pipeline, const Catalog* catalog, Clock* clock)
      : options_(options), pipeline_(pipeline), catalog_(catalog), clock_(clock) {}

  // Predict, whichever transport brought it. `request` and `response` have to live until `answered`, which is
  // called once: on this thread if the request is refused at once, else on one of the pipeline's.
  void Run(const v1::PredictRequest& request, Caller caller, v1::PredictResponse* response,
           Answered answered);

  // What ListModels answers.
  v1::ListModelsResponse Models() const;

  grpc::ServerUnaryReactor* Predict(grpc::CallbackServerContext* context, const v1::PredictRequest* request,
                                    v1::PredictResponse* response) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* PredictStream(
      grpc::CallbackServerContext* context) override;
  grpc::ServerBidiReactor<v1::RestoreRequest, v1::RestoreResponse>* Restore(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const v1::ListModelsRequest* request,
                                       v1::ListModelsResponse* response) override;
  grpc::ServerUnaryReactor* GetModel(grpc::CallbackServerContext* context, const v1::GetModelRequest* request,
                                     v1::Model* response) override;

 private:
  const Options options_;
  Pipeline* const pipeline_;
  const Catalog* const catalog_;
  Clock* const clock_;
};

}  // namespace saccade::server
