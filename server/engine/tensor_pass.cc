#include "server/engine/tensor_pass.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/device/separate_cores.h"
#include "models/programs/values.h"
#include "server/core/bytes_elements.h"
#include "server/engine/graph_threads.h"
#include "server/engine/named_tensors.h"
#include "server/engine/pass_failure.h"

namespace saccade::server {
namespace {

using Requests = std::vector<const NamedTensors*>;
using Value = models::TensorProgram::Value;

std::vector<models::TensorSignature> SignaturesOf(const std::vector<TensorSpec>& specs) {
  std::vector<models::TensorSignature> signatures;
  for (const TensorSpec& spec : specs) {
    signatures.push_back({.name = spec.name,
                          .type = spec.type,
                          .dims = spec.reshape.value_or(spec.dims),
                          .optional = spec.optional,
                          .reshaped = spec.reshape.has_value()});
  }
  return signatures;
}

int64_t Product(absl::Span<const int64_t> extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<int64_t>());
}

// Each request's tensors were checked before. The next two functions also check that the requests agree,
// because buckets are compared by hash only.

// True if none of the requests has the tensor. INTERNAL if only some have it.
absl::StatusOr<bool> IsMissing(const Requests& requests, const TensorSpec& spec) {
  const auto lacks = [&](const NamedTensors* request) { return FindTensor(*request, spec) == nullptr; };
  const auto lacking = std::count_if(requests.begin(), requests.end(), lacks);
  if (lacking == 0 || lacking == static_cast<int64_t>(requests.size())) return lacking > 0;
  return absl::InternalError("requests with and without an input were put into one batch");
}

// The shape of the whole batch. INTERNAL if the requests' shapes differ.
absl::StatusOr<std::vector<int64_t>> BatchShape(const Requests& requests, const TensorSpec& spec,
                                                bool batched) {
  std::vector<int64_t> shape = TensorOf(*requests[0], spec).shape;
  for (size_t i = 1; i < requests.size(); ++i) {
    const std::vector<int64_t>& other = TensorOf(*requests[i], spec).shape;
    if (!std::equal(shape.begin() + 1, shape.end(), other.begin() + 1, other.end()))
      return absl::InternalError("requests of several shapes were put into one batch");
    shape[0] += other[0];
  }
  return ToProgram(spec, batched, shape);
}

Value GatherTexts(const Requests& requests, const TensorSpec& spec) {
  c10::List<std::string> texts;
  for (const NamedTensors* request : requests) {
    const Tensor& tensor = TensorOf(*request, spec);
    auto split = SplitBytes(tensor.data, Product(tensor.shape));
    if (!split.ok()) throw std::runtime_error(std::string(split.status().message()));
    for (const std::string_view element : split->elements) texts.push_back(std::string(element));
  }
  return Value(std::move(texts));
}

Value Gather(const Requests& requests, const TensorSpec& spec, const std::vector<int64_t>& shape) {
  // The batch has memory for what the shapes say.
  for (const NamedTensors* request : requests) {
    const absl::Status fits = CheckBytes(TensorOf(*request, spec));
    if (!fits.ok()) throw std::runtime_error(absl::StrCat("input '", spec.name, "' ", fits.message()));
  }
  const c10::ScalarType type = models::ScalarTypeOf(spec.type);
  const Tensor& first = TensorOf(*requests[0], spec);
  if (requests.size() == 1 && first.data.pieces().size() == 1) {
    const char* const data = first.data.pieces()[0].data();
    const bool aligned = reinterpret_cast<uintptr_t>(data) % SizeOf(spec.type) == 0;
    // Programs write to copies of their inputs, if they write to them; from_blob has no const form.
    if (aligned) return at::from_blob(const_cast<char*>(data), shape, type);
  }
  at::Tensor batch = at::empty(shape, type);
  auto* to = static_cast<char*>(batch.mutable_data_ptr());
  for (const NamedTensors* request : requests) {
    const BytePieces& data = TensorOf(*request, spec).data;
    data.CopyTo(to);
    to += data.size();
  }
  return batch;
}

// Whether the output lies in the input's memory. A library that is no part of LibTorch returns tensors whose
// storage does not tell, so addresses are compared as well.
bool SharesMemory(const at::Tensor& input, const at::Tensor& output) {
  if (input.is_alias_of(output)) return true;
  const auto input_at = reinterpret_cast<uintptr_t>(input.const_data_ptr());
  const auto output_at = reinterpret_cast<uintptr_t>(output.const_data_ptr());
  return input_at < output_at + output.nbytes() && output_at < input_at + input.nbytes();
}

// Copies outputs that share memory with an input, which would not live as long as the answer.
void KeepFromInputs(const std::vector<Value>& inputs, std::vector<Value>* outputs) {
  for (Value& output : *outputs) {
    if (!output.isTensor()) continue;
    const auto shares = [&](const Value& input) {
      return input.isTensor() && SharesMemory(input.toTensor(), output.toTensor());
    };
    if (std::any_of(inputs.begin(), inputs.end(), shares)) output = output.toTensor().clone();
  }
}

// `count` rows of a batch of `of` rows, beginning with `first`.
struct Rows {
  int64_t first = 0;
  int64_t count = 1;
  int64_t of = 1;
};

Tensor Divide(const std::shared_ptr<const at::Tensor>& batch, const TensorSpec& spec, bool batched,
              const Rows& rows) {
  std::vector<int64_t> shape = batch->sizes().vec();
  if (batched) shape[0] = rows.count;
  const size_t row = rows.of == 0 ? 0 : batch->nbytes() / static_cast<size_t>(rows.of);
  const auto* const data = static_cast<const char*>(batch->const_data_ptr());
  const size_t size = static_cast<size_t>(rows.count) * row;
  BytePieces bytes({data + static_cast<size_t>(rows.first) * row, size}, batch);
  // An answer that its client does not read must not keep those of the whole batch.
  if (rows.count < rows.of) {
    const std::shared_ptr<char[]> own(new char[size]);
    bytes.CopyTo(own.get());
    bytes = BytePieces({own.get(), size}, own);
  }
  return {.name = spec.name,
          .type = spec.type,
          .shape = ToClient(spec, batched, shape),
          .data = std::move(bytes)};
}

// The shape of the rows' texts. One extent may be free, and follows from the number of texts.
std::vector<int64_t> ShapeOfTexts(const TensorSpec& spec, bool batched, int64_t texts, const Rows& rows) {
  std::vector<int64_t> shape = spec.reshape.value_or(spec.dims);
  if (batched) shape.insert(shape.begin(), rows.count);
  int64_t known = 1;
  for (const int64_t dim : shape) known *= dim < 0 ? 1 : dim;
  for (int64_t& dim : shape) {
    if (dim < 0) dim = known == 0 ? 0 : texts / known;
  }
  return ToClient(spec, batched, shape);
}

Tensor DivideTexts(c10::ArrayRef<Value> batch, const TensorSpec& spec, bool batched, const Rows& rows) {
  const size_t row = rows.of == 0 ? 0 : batch.size() / static_cast<size_t>(rows.of);
  const auto own = batch.slice(static_cast<size_t>(rows.first) * row, static_cast<size_t>(rows.count) * row);
  const auto text = std::make_shared<std::string>();
  for (const Value& value : own) {
    const std::string& element = value.toStringRef();
    const auto length = static_cast<uint32_t>(element.size());
    for (int shift = 0; shift < 32; shift += 8) text->push_back(static_cast<char>(length >> shift & 0xFF));
    text->append(element);
  }
  return {.name = spec.name,
          .type = spec.type,
          .shape = ShapeOfTexts(spec, batched, static_cast<int64_t>(own.size()), rows),
          .data = BytePieces(*text, text)};
}

std::vector<std::vector<Tensor>> Divide(std::vector<Value> outputs, const ModelSettings& settings,
                                        const Requests& requests) {
  const bool batched = settings.has_batch_dimension;
  int64_t all = 0;
  for (const NamedTensors* request : requests) all += request->rows;
  std::vector<std::vector<Tensor>> answers(requests.size());
  for (size_t k = 0; k < outputs.size(); ++k) {
    const TensorSpec& spec = settings.outputs[k];
    const auto kept = outputs[k].isTensor()
                          ? std::make_shared<const at::Tensor>(std::move(outputs[k]).toTensor())
                          : nullptr;
    Rows rows = {.of = all};
    for (size_t i = 0; i < requests.size(); ++i) {
      rows.count = requests[i]->rows;
      answers[i].push_back(kept ? Divide(kept, spec, batched, rows)
                                : DivideTexts(outputs[k].toListRef(), spec, batched, rows));
      rows.first += rows.count;
    }
  }
  return answers;
}

absl::StatusOr<std::vector<std::vector<Tensor>>> RunTogether(const models::TensorProgram& program,
                                                             const ModelSettings& settings,
                                                             const Requests& requests) {
  std::vector<Value> inputs;
  for (const TensorSpec& spec : settings.inputs) {
    const auto missing = IsMissing(requests, spec);
    if (!missing.ok()) return missing.status();
    if (*missing) {
      inputs.emplace_back();
      continue;
    }
    const auto shape = BatchShape(requests, spec, settings.has_batch_dimension);
    if (!shape.ok()) return shape.status();
    inputs.push_back(spec.type == DataType::kBytes ? GatherTexts(requests, spec)
                                                   : Gather(requests, spec, *shape));
  }
  const models::SeparateCores own;
  std::vector<Value> outputs = program.Run(inputs);
  KeepFromInputs(inputs, &outputs);
  return Divide(std::move(outputs), settings, requests);
}

absl::StatusOr<std::vector<std::vector<Tensor>>> Run(const models::TensorProgram& program,
                                                     const ModelSettings& settings,
                                                     const Requests& requests) {
  // Without a tensor, nothing tells the program how many rows the batch has.
  if (!requests[0]->tensors.empty()) return RunTogether(program, settings, requests);
  std::vector<std::vector<Tensor>> answers;
  for (const NamedTensors* request : requests) {
    auto answer = RunTogether(program, settings, {request});
    if (!answer.ok()) return answer.status();
    answers.push_back(std::move(answer->front()));
  }
  return answers;
}

}  // namespace

models::Signature SignatureOf(const ModelSettings& settings) {
  return {.inputs = SignaturesOf(settings.inputs),
          .outputs = SignaturesOf(settings.outputs),
          .batched = settings.has_batch_dimension,
          .strict_outputs = settings.strict_output_shapes};
}

absl::StatusOr<std::vector<std::vector<Tensor>>> RunTensors(const models::TensorProgram& program,
                                                            const ModelSettings& settings,
                                                            const Requests& requests) {
  LeaveCoresToGraph(settings);
  try {
    return Run(program, settings, requests);
  } catch (const std::exception& error) {
    return PassFailure(error);
  }
}

}  // namespace saccade::server
