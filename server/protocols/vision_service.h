// saccade.v1.Vision on gRPC's callback API.
#pragma once

#include "saccade/v1/vision.grpc.pb.h"
#include "server/core/clock.h"
#include "server/pipeline/catalog.h"
#include "server/pipeline/pipeline.h"

namespace saccade::server {

// Thread-safe; no call blocks.
class VisionService final : public v1::Vision::CallbackService {
 public:
  // Everything must outlive the service.
  VisionService(Pipeline* pipeline, const Catalog* catalog, Clock* clock)
      : pipeline_(pipeline), catalog_(catalog), clock_(clock) {}

  grpc::ServerUnaryReactor* Predict(grpc::CallbackServerContext* context, const v1::PredictRequest* request,
                                    v1::PredictResponse* response) override;
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const v1::ListModelsRequest* request,
                                       v1::ListModelsResponse* response) override;
  grpc::ServerUnaryReactor* GetModel(grpc::CallbackServerContext* context, const v1::GetModelRequest* request,
                                     v1::Model* response) override;

 private:
  Pipeline* const pipeline_;
  const Catalog* const catalog_;
  Clock* const clock_;
};

}  // namespace saccade::server
