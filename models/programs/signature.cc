#include "models/programs/signature.h"

namespace saccade::models {

std::string DescribeTensor(const TensorSignature& tensor, bool batched) {
  std::string text = NameOf(tensor.type);
  text += batched ? " [-1" : " [";
  for (size_t i = 0; i < tensor.dims.size(); ++i) {
    if (i > 0 || batched) text += ',';
    text += std::to_string(tensor.dims[i]);
  }
  return text + "]";
}

}  // namespace saccade::models
