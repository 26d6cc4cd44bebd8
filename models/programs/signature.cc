#include "models/programs/signature.h"

#include <array>

namespace saccade::models {
namespace {

constexpr std::array<const char*, 14> kNames = {"BOOL", "UINT8", "UINT16", "UINT32", "UINT64",
                                                "INT8", "INT16", "INT32",  "INT64",  "FP16",
                                                "BF16", "FP32",  "FP64",   "BYTES"};

}  // namespace

const char* ValueTypeName(ValueType type) { return kNames.at(static_cast<size_t>(type)); }

std::string DescribeTensor(const TensorSignature& tensor, bool batched) {
  std::string text = ValueTypeName(tensor.type);
  text += batched ? " [-1" : " [";
  for (size_t i = 0; i < tensor.dims.size(); ++i) {
    if (i > 0 || batched) text += ',';
    text += std::to_string(tensor.dims[i]);
  }
  return text + "]";
}

}  // namespace saccade::models
