#include "models/programs/values.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace saccade::models {
namespace {

using Value = TensorProgram::Value;

constexpr std::array<std::pair<DataType, c10::ScalarType>, 13> kTypes = {{
    {DataType::kBool, c10::ScalarType::Bool},
    {DataType::kUint8, c10::ScalarType::Byte},
    {DataType::kUint16, c10::ScalarType::UInt16},
    {DataType::kUint32, c10::ScalarType::UInt32},
    {DataType::kUint64, c10::ScalarType::UInt64},
    {DataType::kInt8, c10::ScalarType::Char},
    {DataType::kInt16, c10::ScalarType::Short},
    {DataType::kInt32, c10::ScalarType::Int},
    {DataType::kInt64, c10::ScalarType::Long},
    {DataType::kFp16, c10::ScalarType::Half},
    {DataType::kBf16, c10::ScalarType::BFloat16},
    {DataType::kFp32, c10::ScalarType::Float},
    {DataType::kFp64, c10::ScalarType::Double},
}};

std::optional<DataType> DataTypeOf(c10::ScalarType type) {
  for (const auto& [element, scalar] : kTypes) {
    if (scalar == type) return element;
  }
  return std::nullopt;
}

std::string Describe(const at::Tensor& tensor) {
  const std::optional<DataType> type = DataTypeOf(tensor.scalar_type());
  std::string text = type ? NameOf(*type) : c10::toString(tensor.scalar_type());
  text += " [";
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(tensor.size(i));
  }
  return text + "]";
}

bool Fits(const at::Tensor& tensor, const TensorSignature& expected, int64_t rows, bool strict) {
  const int64_t before = rows < 0 ? 0 : 1;
  if (tensor.scalar_type() != ScalarTypeOf(expected.type)) return false;
  if (rows >= 0 && (tensor.dim() == 0 || tensor.size(0) != rows)) return false;
  if (!strict) return true;
  if (tensor.dim() != before + static_cast<int64_t>(expected.dims.size())) return false;
  for (size_t i = 0; i < expected.dims.size(); ++i) {
    if (expected.dims[i] >= 0 && tensor.size(before + static_cast<int64_t>(i)) != expected.dims[i])
      return false;
  }
  return true;
}

[[noreturn]] void Refuse(const TensorSignature& expected, int64_t rows, const std::string& got) {
  std::string batch;
  if (rows >= 0) batch = ", for a batch of " + std::to_string(rows);
  throw std::runtime_error("output '" + expected.name + "': the program returned " + got +
                           ", but the configuration says " + DescribeTensor(expected, rows >= 0) + batch);
}

// Returns the number of strings that a BYTES output must have; nullopt if a dimension is -1.
std::optional<int64_t> TextsOf(const TensorSignature& expected, int64_t rows) {
  int64_t count = rows < 0 ? 1 : rows;
  for (const int64_t dim : expected.dims) {
    if (dim < 0) return std::nullopt;
    count *= dim;
  }
  return count;
}

Value CheckTexts(const TensorSignature& expected, int64_t rows, Value value) {
  const bool texts =
      value.isList() && !value.toListRef().empty() ? value.toListRef()[0].isString() : value.isList();
  if (!texts) Refuse(expected, rows, value.tagKind());
  const auto count = static_cast<int64_t>(value.toListRef().size());
  const std::optional<int64_t> wanted = TextsOf(expected, rows);
  if (wanted ? count != *wanted : rows > 0 && count % rows != 0)
    Refuse(expected, rows, "BYTES [" + std::to_string(count) + "]");
  return value;
}

}  // namespace

c10::ScalarType ScalarTypeOf(DataType type) {
  for (const auto& [element, scalar] : kTypes) {
    if (element == type) return scalar;
  }
  throw std::logic_error("BYTES has no LibTorch type");
}

int64_t RowsOf(const Signature& signature, const std::vector<Value>& inputs) {
  if (!signature.batched) return -1;
  for (const Value& input : inputs) {
    if (input.isTensor()) return input.toTensor().size(0);
  }
  // There are only strings: divides those of the first input that is there by the number per row.
  const auto given = [](const Value& input) { return input.isList(); };
  const auto found = std::find_if(inputs.begin(), inputs.end(), given);
  if (found == inputs.end()) return 1;
  const auto first = static_cast<size_t>(found - inputs.begin());
  int64_t each = 1;
  for (const int64_t dim : signature.inputs[first].dims) each *= dim < 0 ? 1 : dim;
  return static_cast<int64_t>(inputs[first].toListRef().size()) / std::max<int64_t>(1, each);
}

std::vector<Value> CheckOutputs(const Signature& signature, int64_t rows, std::vector<Value> outputs) {
  for (size_t i = 0; i < signature.outputs.size(); ++i) {
    const TensorSignature& expected = signature.outputs[i];
    Value& value = outputs[i];
    if (expected.type == DataType::kBytes) {
      value = CheckTexts(expected, rows, std::move(value));
      continue;
    }
    if (!value.isTensor() || !value.toTensor().defined()) Refuse(expected, rows, value.tagKind());
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.is_contiguous() || tensor.layout() != c10::kStrided || tensor.is_quantized()) {
      if (tensor.layout() != c10::kStrided || tensor.is_quantized())
        Refuse(expected, rows, "a sparse or quantised tensor");
      value = tensor.contiguous();
    }
    const bool strict = signature.strict_outputs || expected.reshaped;
    if (!Fits(value.toTensor(), expected, rows, strict)) Refuse(expected, rows, Describe(value.toTensor()));
  }
  return outputs;
}

}  // namespace saccade::models
