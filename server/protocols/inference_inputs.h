// The pictures in an Open Inference Protocol request.
//
// Every model has one input, 'image': BYTES [n] or [n,1], one encoded picture, video or TIFF an element;
// [n,2], stereo pairs; [n,frames], clips. Or FP32, as TensorInput says (server/core/request.h).
#pragma once

#include "absl/status/statusor.h"
#include "inference/grpc_service.pb.h"
#include "models/description.h"
#include "server/core/request.h"
#include "server/protocols/inference_request.h"

namespace saccade::server {

// What errors about it begin with.
inline constexpr char kInferenceInput[] = "input 'image'";

struct InferencePictures {
  Input input;
  // Of an item, as far as the shape tells: a tensor's channels are compared with the model's later.
  int views = 1;
};

// Points into `received`, which must outlive it. INVALID_ARGUMENT names the tensor or field.
absl::StatusOr<InferencePictures> InputOf(const InferenceRequest& received);

// How ModelMetadata describes it: FP32 of the network's size where there is one, BYTES where pictures keep
// their own sizes.
void DescribeInput(const models::ImageInput& input,
                   inference::ModelMetadataResponse::TensorMetadata* message);

}  // namespace saccade::server
