// Extracts the pictures from a call's tensors.
//
// Each of our models has one input, 'image'. It is BYTES [n] or [n,1] with an encoded picture, video or TIFF
// per element; BYTES [n,2] with stereo pairs; BYTES [n,frames] with clips; or FP32 as described for
// TensorInput (server/core/request.h).
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "models/api/description.h"
#include "server/core/request.h"
#include "server/core/tensor_call.h"

namespace saccade::server {

// The prefix of errors about the input.
inline constexpr char kImageInput[] = "input 'image'";

struct InputPictures {
  Input input;
  // Pictures per item, from the shape of BYTES; 1 for FP32, whose channels are checked against the model
  // later.
  int views = 1;
};

// The result refers to the memory of `call`'s tensors. INVALID_ARGUMENT names the tensor.
absl::StatusOr<InputPictures> PicturesOf(const TensorCall& call);

// FP32 of the network's size if that is fixed; BYTES if pictures keep their own sizes, and for clips and
// volumes.
TensorDescription DescribeImage(const models::ImageInput& input);

// Every accepted form of the input. The pipeline checks extents that are -1 here.
std::vector<TensorDescription> FormsOfImage(const models::ImageInput& input);

}  // namespace saccade::server
