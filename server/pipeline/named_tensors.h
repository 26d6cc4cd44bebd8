// Tensors of a request to a program against the model's configuration.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/core/request.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

// "FP32 [-1,3,-1,-1]", with the batch in front where there is one.
std::string DescribeTensor(const TensorSpec& spec, bool batched);

// Whether the request names every input once, but for optional ones, and nothing else, of its type and shape;
// with a batch, whether all have `rows` in front. INVALID_ARGUMENT that names the input.
absl::Status CheckTensors(const NamedTensors& sent, const ModelSettings& settings);

// nullptr of an optional input that is missing. REQUIRES: CheckTensors was OK.
const Tensor* FindTensor(const NamedTensors& sent, const TensorSpec& spec);
// REQUIRES: it is there.
const Tensor& TensorOf(const NamedTensors& sent, const TensorSpec& spec);

// A client's shape as the program takes it, and a program's as clients get it: TensorSpec::reshape. REQUIRES:
// it fits the spec.
std::vector<int64_t> ToProgram(const TensorSpec& spec, bool batched, absl::Span<const int64_t> shape);
std::vector<int64_t> ToClient(const TensorSpec& spec, bool batched, absl::Span<const int64_t> shape);

// Of the shapes beyond the batch, and of which are missing: requests that agree may share one. REQUIRES:
// CheckTensors was OK.
int64_t BucketOf(const NamedTensors& sent, const ModelSettings& settings);

}  // namespace saccade::server
