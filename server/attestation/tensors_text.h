// Named tensors as JSON on one line, without their bytes.
#pragma once

#include <string>
#include <vector>

#include "server/core/tensor.h"
#include "server/core/tensor_call.h"

namespace saccade::server {

// {"inputs":[{"name":"image","datatype":"FP32","shape":[1,3]}],"outputs":[{"name":"logits","classes":0}]}. An
// empty list of outputs stands for those that the model returns by default.
std::string RequestText(const std::vector<Tensor>& inputs, const std::vector<WantedOutput>& outputs);

// [{"name":"logits","datatype":"FP32","shape":[1,5],"sha256":"..."}], with the digest of each tensor's bytes.
// Empty if memory was short.
std::string AnswerText(const std::vector<Tensor>& outputs);

}  // namespace saccade::server
