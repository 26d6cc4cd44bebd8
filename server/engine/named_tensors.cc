#include "server/engine/named_tensors.h"

#include <algorithm>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/core/bytes_elements.h"
#include "server/core/errors.h"

namespace saccade::server {
namespace {

// As many strings as a message's typed contents may have. An element of no bytes takes 4 in the message and
// far more here.
constexpr int64_t kMaxTexts = int64_t{1} << 18;

std::vector<int64_t> WithBatch(absl::Span<const int64_t> dims, bool batched, int64_t batch = -1) {
  std::vector<int64_t> shape;
  if (batched) shape.push_back(batch);
  shape.insert(shape.end(), dims.begin(), dims.end());
  return shape;
}

std::string InputsOf(const ModelSettings& settings) {
  return absl::StrJoin(settings.inputs, ", ", [&](std::string* out, const TensorSpec& spec) {
    absl::StrAppend(out, "'", spec.name, "' (", DescribeTensor(spec, settings.has_batch_dimension), ")");
  });
}

const Tensor* Find(const NamedTensors& sent, const std::string& name) {
  const auto named = [&name](const Tensor& tensor) { return tensor.name == name; };
  const auto found = std::find_if(sent.tensors.begin(), sent.tensors.end(), named);
  return found == sent.tensors.end() ? nullptr : &*found;
}

absl::Status CheckNames(const NamedTensors& sent, const ModelSettings& settings) {
  for (const Tensor& tensor : sent.tensors) {
    const auto named = [&tensor](const auto& other) { return other.name == tensor.name; };
    const std::string shown = Shown(tensor.name);
    if (std::none_of(settings.inputs.begin(), settings.inputs.end(), named)) {
      return Invalid("inputs", absl::StrCat("no input is named ", shown, "; model '", settings.name,
                                            "' takes ", InputsOf(settings)));
    }
    if (std::count_if(sent.tensors.begin(), sent.tensors.end(), named) > 1)
      return Invalid("inputs", absl::StrCat(shown, " is given more than once"));
  }
  for (const TensorSpec& spec : settings.inputs) {
    if (spec.optional || Find(sent, spec.name) != nullptr) continue;
    return Invalid("inputs", absl::StrCat("'", spec.name, "' is missing; model '", settings.name, "' takes ",
                                          InputsOf(settings)));
  }
  return absl::OkStatus();
}

absl::Status CheckTexts(const Tensor& tensor, const std::string& subject) {
  const auto count = ElementCount(tensor.shape);
  if (!count.ok()) return Invalid(subject, absl::string_view(count.status().message()));
  if (*count > kMaxTexts) {
    return Invalid(subject, absl::StrCat("the shape is ", ShapeText(tensor.shape), ", more than ", kMaxTexts,
                                         " elements of BYTES; send them in several requests"));
  }
  const auto texts = SplitBytes(tensor.data, *count);
  return texts.ok() ? absl::OkStatus() : Invalid(subject, absl::string_view(texts.status().message()));
}

absl::Status CheckTensor(const Tensor& tensor, const TensorSpec& spec, const NamedTensors& sent,
                         bool batched) {
  const std::string subject = absl::StrCat("input '", spec.name, "'");
  if (tensor.type != spec.type) {
    return Invalid(subject,
                   absl::StrCat("the datatype is ", NameOf(tensor.type), ", expected ", NameOf(spec.type)));
  }
  if (!FitsShape(tensor.shape, spec, batched)) {
    return Invalid(subject, absl::StrCat("the shape is ", ShapeText(tensor.shape), ", expected ",
                                         ShapeText(WithBatch(spec.dims, batched)),
                                         batched ? " (the batch dimension first)" : ""));
  }
  if (batched && tensor.shape[0] != sent.rows) {
    return Invalid(
        subject, absl::StrCat("the batch is ", tensor.shape[0], ", but that of input '", sent.tensors[0].name,
                              "' is ", sent.rows, "; all inputs of a request must have the same batch size"));
  }
  return spec.type == DataType::kBytes ? CheckTexts(tensor, subject) : absl::OkStatus();
}

// Converts `shape`, which fits `from`, to fit `to`: the i-th free extent of `to` is the i-th free extent of
// `from`.
std::vector<int64_t> Reshaped(absl::Span<const int64_t> from, absl::Span<const int64_t> to, bool batched,
                              absl::Span<const int64_t> shape) {
  std::vector<int64_t> made;
  if (batched) {
    made.push_back(shape[0]);
    shape.remove_prefix(1);
  }
  size_t next = 0;
  for (const int64_t dim : to) {
    if (dim >= 0) {
      made.push_back(dim);
      continue;
    }
    while (from[next] >= 0) ++next;
    made.push_back(shape[next++]);
  }
  return made;
}

}  // namespace

std::string DescribeTensor(const TensorSpec& spec, bool batched) {
  return absl::StrCat(NameOf(spec.type), " ", ShapeText(WithBatch(spec.dims, batched)));
}

bool FitsShape(const std::vector<int64_t>& shape, const TensorSpec& spec, bool batched) {
  const std::vector<int64_t> expected = WithBatch(spec.dims, batched);
  const auto fits = [](int64_t got, int64_t wanted) { return wanted < 0 || got == wanted; };
  return std::equal(shape.begin(), shape.end(), expected.begin(), expected.end(), fits);
}

absl::Status CheckTensors(const NamedTensors& sent, const ModelSettings& settings) {
  if (absl::Status names = CheckNames(sent, settings); !names.ok()) return names;
  for (const TensorSpec& spec : settings.inputs) {
    const Tensor* const tensor = FindTensor(sent, spec);
    if (tensor == nullptr) continue;
    absl::Status fits = CheckTensor(*tensor, spec, sent, settings.has_batch_dimension);
    if (!fits.ok()) return fits;
  }
  return absl::OkStatus();
}

const Tensor* FindTensor(const NamedTensors& sent, const TensorSpec& spec) { return Find(sent, spec.name); }

const Tensor& TensorOf(const NamedTensors& sent, const TensorSpec& spec) { return *Find(sent, spec.name); }

std::vector<int64_t> ToProgram(const TensorSpec& spec, bool batched, absl::Span<const int64_t> shape) {
  if (!spec.reshape) return {shape.begin(), shape.end()};
  return Reshaped(spec.dims, *spec.reshape, batched, shape);
}

std::vector<int64_t> ToClient(const TensorSpec& spec, bool batched, absl::Span<const int64_t> shape) {
  if (!spec.reshape) return {shape.begin(), shape.end()};
  return Reshaped(*spec.reshape, spec.dims, batched, shape);
}

int64_t BucketOf(const NamedTensors& sent, const ModelSettings& settings) {
  std::vector<std::vector<int64_t>> shapes;
  for (const TensorSpec& spec : settings.inputs) {
    const Tensor* const tensor = FindTensor(sent, spec);
    if (tensor == nullptr) {
      // No tensor has this shape.
      shapes.push_back({-1});
      continue;
    }
    shapes.emplace_back(tensor->shape.begin() + (settings.has_batch_dimension ? 1 : 0), tensor->shape.end());
  }
  return static_cast<int64_t>(absl::HashOf(shapes));
}

}  // namespace saccade::server
