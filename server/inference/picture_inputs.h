// The pictures in a call's tensors.
//
// Every model of ours has one input, 'image': BYTES [n] or [n,1], one encoded picture, video or TIFF an
// element; [n,2], stereo pairs; [n,frames], clips. Or FP32, as TensorInput says (server/core/request.h).
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "models/description.h"
#include "server/core/request.h"
#include "server/core/tensor_call.h"

namespace saccade::server {

// What errors about it begin with.
inline constexpr char kImageInput[] = "input 'image'";

struct InputPictures {
  Input input;
  // Of an item, as far as the shape tells: a tensor's channels are compared with the model's later.
  int views = 1;
};

// Points into what `call`'s tensors point into. INVALID_ARGUMENT names the tensor.
absl::StatusOr<InputPictures> PicturesOf(const TensorCall& call);

// FP32 of the network's size where there is one, BYTES where pictures keep their own sizes.
TensorDescription DescribeImage(const models::ImageInput& input);

// Every form in which it may come; the pipeline checks what -1 leaves open.
std::vector<TensorDescription> FormsOfImage(const models::ImageInput& input);

}  // namespace saccade::server
