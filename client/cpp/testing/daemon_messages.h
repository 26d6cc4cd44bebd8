// The daemon's side of messages.h, for the fake daemon.
#pragma once

#include "absl/status/status.h"
#include "client/cpp/testing/fake_daemon.h"
#include "client/cpp/types.h"
#include "inference/grpc_service.pb.h"
#include "saccade/v1/vision.pb.h"

namespace saccade::client {

FakeRequest FromRequest(const v1::PredictRequest& request);
// Converts all but the volume itself.
FakeRequest FromHeader(const v1::RestoreHeader& header);
v1::PredictResponse ToResponse(const AnyAnswer& answer);
v1::ItemError ToItemError(const absl::Status& status);
v1::Model ToProto(const Model& model);
inference::ModelStatistics ToProto(const ModelStatistics& model);

}  // namespace saccade::client
