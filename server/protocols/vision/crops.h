// Requests of saccade.v1 for a model, or for an ensemble whose detections other models see as crops.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "saccade/v1/vision.pb.h"
#include "server/catalog/catalog.h"
#include "server/core/request.h"
#include "server/engine/pipeline.h"

namespace saccade::server {

// A request's messages. Both must outlive the request.
struct VisionCall {
  const v1::PredictRequest* message;
  v1::PredictResponse* answer;
  // Bounds the answer's size, together with `around`, the size of the message around it.
  int64_t max_bytes = 0;
  int64_t around = 0;
};

// Computes the request like Pipeline::Predict and fills in the answer, all but its timings, before `done` is
// called. Of the response, only timings and charge are meant for the caller. The pointers must outlive the
// request.
//
// For an ensemble with crops the detector computes the request. The picture is then decoded once more, at its
// full size, and the pixels around each box become a request of their own: it shares batches with all others,
// and its result is the one that a client would get for that region. ClientCrops bounds how many of them are
// in flight. A crop that its model cannot compute becomes the crop's error. Whatever else fails (a deadline,
// a cancellation, a rejection) ends the request; its other crops are cancelled, and `done` is called when
// none runs any more.
void PredictVision(Pipeline* pipeline, const Catalog* catalog, Request request, const VisionCall& call,
                   PredictDone done);

// The model that determines the task of requests for `model`: itself, or the detector of an ensemble with
// crops. Null for other ensembles. Errors are those of FindCropModels().
absl::StatusOr<std::shared_ptr<ServedModel>> TaskModelOf(const Catalog& catalog,
                                                         std::shared_ptr<ServedModel> model);

// Gives the snapshot of an ensemble with crops its detector's task and labels.
ModelSnapshot WithTask(const Catalog& catalog, ModelSnapshot snapshot);

}  // namespace saccade::server
