// What a tensor program takes and gives, as the model repository's configuration describes it. No LibTorch
// here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace saccade::models {

// Elements by the Open Inference Protocol's names; kBytes are texts of any length.
enum class ValueType {
  kBool,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFp16,
  kBf16,
  kFp32,
  kFp64,
  kBytes,
};

// "BOOL", "UINT8", ... "BYTES".
const char* ValueTypeName(ValueType type);

struct TensorSignature {
  std::string name;
  ValueType type = ValueType::kFp32;
  // Without the batch; -1 is any extent.
  std::vector<int64_t> dims = {};
  // Of an input: it may be missing.
  bool optional = false;
};

struct Signature {
  std::vector<TensorSignature> inputs;
  std::vector<TensorSignature> outputs;
  // Every tensor has one more dimension in front, the same of all: the rows of the batch. A row of the
  // outputs depends on the same row of the inputs alone.
  bool batched = false;
};

// "FP32 [-1,3,-1,-1]", with the batch in front where there is one.
std::string DescribeTensor(const TensorSignature& tensor, bool batched);

}  // namespace saccade::models
