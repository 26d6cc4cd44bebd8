// Checks the tensors of a request to a program against the model's configuration.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/core/request.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

// "FP32 [-1,3,-1,-1]", with the batch dimension first if there is one.
std::string DescribeTensor(const TensorSpec& spec, bool batched);

// Whether a tensor of a client with this shape fits the dims of `spec`.
bool FitsShape(const std::vector<int64_t>& shape, const TensorSpec& spec, bool batched);

// Checks that the request holds each input exactly once (optional ones at most once), no other tensor, and
// the configured types and shapes, and that a BYTES tensor has as many elements as its shape says; with a
// batch dimension, that the first extent of each is `rows`.
// INVALID_ARGUMENT names the input.
absl::Status CheckTensors(const NamedTensors& sent, const ModelSettings& settings);

// Null if an optional input is missing. REQUIRES: CheckTensors() returned OK.
const Tensor* FindTensor(const NamedTensors& sent, const TensorSpec& spec);
// REQUIRES: the tensor exists.
const Tensor& TensorOf(const NamedTensors& sent, const TensorSpec& spec);

// Converts between a client's shape and the program's (TensorSpec::reshape). REQUIRES: `shape` fits the spec.
std::vector<int64_t> ToProgram(const TensorSpec& spec, bool batched, absl::Span<const int64_t> shape);
std::vector<int64_t> ToClient(const TensorSpec& spec, bool batched, absl::Span<const int64_t> shape);

// A hash of the shapes without the batch dimension and of the missing inputs. Requests that agree may share a
// batch. REQUIRES: CheckTensors() returned OK.
int64_t BucketOf(const NamedTensors& sent, const ModelSettings& settings);

}  // namespace saccade::server
