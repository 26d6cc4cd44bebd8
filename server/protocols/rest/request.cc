#include "server/protocols/rest/request.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/core/errors.h"
#include "server/inference/parameters.h"
#include "server/inference/shared_inputs.h"
#include "server/protocols/rest/json.h"
#include "server/protocols/rest/media.h"

namespace saccade::server {
namespace {

constexpr char kBinarySize[] = "binary_data_size";
constexpr char kBinaryOutput[] = "binary_data_output";
constexpr char kBinary[] = "binary_data";
constexpr char kSharedMemory[] = "shared_memory_region";

// Longer JSON is not searched for the types of its tensors.
constexpr size_t kMaxSearchedJson = size_t{4} << 10;

const RestValue* Find(const RestParameters& parameters, absl::string_view name) {
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [name](const auto& parameter) { return parameter.first == name; });
  return found == parameters.end() ? nullptr : &found->second;
}

// nullopt if the parameter is missing.
absl::StatusOr<std::optional<bool>> FlagOf(const RestParameters& parameters, absl::string_view name) {
  const RestValue* value = Find(parameters, name);
  if (value == nullptr) return std::nullopt;
  if (const auto* flag = std::get_if<bool>(value)) return *flag;
  return absl::InvalidArgumentError(absl::StrCat("parameter ", name, ": expected true or false"));
}

template <typename To>
absl::Status ApplyAll(const RestParameters& parameters, To& to) {
  for (const auto& [name, value] : parameters) {
    if (absl::Status status = ApplyParameter(name, ToParameter(value), to); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// The body's binary data, of which tensors take their parts in order.
class Binary {
 public:
  Binary(const RestBody& body, size_t json_bytes) : body_(body), rest_(body.bytes.substr(json_bytes)) {}

  absl::StatusOr<BytePieces> Take(const RestValue& size) {
    const auto* bytes = std::get_if<uint64_t>(&size);
    if (bytes == nullptr)
      return absl::InvalidArgumentError(absl::StrCat(kBinarySize, ": expected a number of bytes"));
    if (!body_.json_length) {
      return absl::InvalidArgumentError(
          absl::StrCat(kBinarySize, " is given, but the header ", kJsonLengthHeader,
                       " is missing, so the start of the binary data is unknown"));
    }
    if (*bytes > rest_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(kBinarySize, " is ", *bytes, ", but the body has only ", rest_.size(), " bytes left"));
    }
    const BytePieces taken({rest_.data(), static_cast<size_t>(*bytes)}, body_.owner);
    rest_.remove_prefix(*bytes);
    taken_ += *bytes;
    return taken;
  }

  size_t taken() const { return taken_; }
  size_t left() const { return rest_.size(); }

 private:
  const RestBody& body_;
  absl::string_view rest_;
  size_t taken_ = 0;
};

// Reads an input in shared memory.
absl::StatusOr<BytePieces> ReadShared(const RestTensor& input, SharedInputs& shared) {
  std::optional<SharedRange> range;
  if (absl::Status applied = ApplyAll(input.parameters, range); !applied.ok()) return applied;
  if (input.data || Find(input.parameters, kBinarySize) != nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("has both ", input.data ? "data" : kBinarySize, " and ",
                                                   kSharedMemory, "; send one of them"));
  }
  return shared.Read(range);
}

absl::StatusOr<BytePieces> DataOf(RestTensor& input, Binary& binary, SharedInputs& shared) {
  if (Find(input.parameters, kSharedMemory) != nullptr) return ReadShared(input, shared);
  const RestValue* size = Find(input.parameters, kBinarySize);
  if (size != nullptr && input.data) {
    return absl::InvalidArgumentError("has both data and binary_data_size; send one of them");
  }
  if (size != nullptr) return binary.Take(*size);
  if (input.data) return *std::move(input.data);
  return absl::InvalidArgumentError(
      "has no data; send \"data\", the parameter binary_data_size and the bytes, or shared_memory_region");
}

absl::StatusOr<Tensor> InputOf(RestTensor& input, Binary& binary, SharedInputs& shared) {
  if (!input.name) return absl::InvalidArgumentError("has no \"name\"");
  if (!input.type) return absl::InvalidArgumentError("has no \"datatype\"; expected FP32, BYTES, ...");
  if (!input.shape) return absl::InvalidArgumentError("has no \"shape\"");
  auto data = DataOf(input, binary, shared);
  if (!data.ok()) return data.status();
  Tensor tensor{
      .name = *input.name, .type = *input.type, .shape = *std::move(input.shape), .data = *std::move(data)};
  if (absl::Status fits = CheckBytes(tensor); !fits.ok()) return fits;
  return tensor;
}

// Prefixes `status` with `subject`.
absl::Status About(const std::string& subject, const absl::Status& status) {
  absl::Status why(status.code(), absl::StrCat(subject, ": ", status.message()));
  if (absl::IsInvalidArgument(why)) SetBadField(why, subject);
  return why;
}

std::string NameOfTensor(absl::string_view kind, const RestTensor& tensor, size_t number) {
  return absl::StrCat(kind, " ", tensor.name ? Shown(*tensor.name) : absl::StrCat("number ", number + 1));
}

absl::Status ReadInputs(RestJson& request, Binary binary, SharedInputs& shared, TensorCall& call) {
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    auto tensor = InputOf(request.inputs[i], binary, shared);
    if (!tensor.ok()) return About(NameOfTensor("input", request.inputs[i], i), tensor.status());
    call.inputs.push_back(*std::move(tensor));
  }
  call.charged_bytes = static_cast<int64_t>(binary.taken()) + shared.charged();
  if (binary.left() == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the body has ", binary.left(), " bytes more than the JSON and the inputs' ", kBinarySize, " say"));
}

absl::Status ReadOutput(const RestTensor& output, TensorCall& call, RestForm& form) {
  if (!output.name) return absl::InvalidArgumentError("has no \"name\"");
  WantedOutput wanted{.name = *output.name};
  absl::Status applied = ApplyAll(output.parameters, wanted);
  if (applied.ok()) applied = CheckParameters(wanted);
  if (!applied.ok()) return applied;
  auto binary = FlagOf(output.parameters, kBinary);
  if (!binary.ok()) return binary.status();
  if (*binary) form.binary[*output.name] = **binary;
  call.outputs.push_back(std::move(wanted));
  return absl::OkStatus();
}

absl::Status ReadOutputs(const RestJson& request, TensorCall& call, RestForm& form) {
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    const absl::Status read = ReadOutput(request.outputs[i], call, form);
    if (!read.ok()) return About(NameOfTensor("output", request.outputs[i], i), read);
  }
  return absl::OkStatus();
}

// Size of the elements in JSON.
size_t DataBytes(const RestJson& request) {
  size_t bytes = 0;
  for (const RestTensor& input : request.inputs) bytes += input.data ? input.data->size() : 0;
  return bytes;
}

// How many of a body's `body_bytes` are JSON if kJsonLengthHeader has the value `named`. Nullopt if that is
// no such number.
std::optional<size_t> JsonBytes(std::optional<absl::string_view> named, size_t body_bytes) {
  if (!named) return body_bytes;
  size_t bytes = 0;
  if (absl::SimpleAtoi(*named, &bytes) && bytes <= body_bytes) return bytes;
  return std::nullopt;
}

absl::StatusOr<size_t> JsonBytes(const RestBody& body) {
  if (const auto bytes = JsonBytes(body.json_length, body.bytes.size())) return *bytes;
  return Invalid(kJsonLengthHeader,
                 absl::StrCat("is ", Shown(*body.json_length), "; expected a number up to the body's ",
                              body.bytes.size(), " bytes"));
}

}  // namespace

bool RestForm::BinaryOf(const std::string& output) const {
  const auto named = binary.find(output);
  return named == binary.end() ? binary_by_default : named->second;
}

absl::StatusOr<RestCall> ReadRestRequest(const RestBody& body, const SharedMemory& shared_memory,
                                         const RestLimits& limits) {
  const auto json_bytes = JsonBytes(body);
  if (!json_bytes.ok()) return json_bytes.status();
  const absl::string_view json = body.bytes.substr(0, *json_bytes);
  if (absl::Status text = CheckIsNoFile(json); !text.ok()) return text;
  auto request = ParseRestJson(json, limits);
  if (!request.ok()) return request.status();
  if (absl::Status fits = CheckInferId(request->id); !fits.ok()) return fits;
  RestCall read;
  read.charges = std::move(request->charges);
  read.call.id = std::move(request->id);
  // Taken before the inputs take their data.
  const size_t charged = limits.ledger != nullptr ? DataBytes(*request) : 0;
  const auto binary = FlagOf(request->parameters, kBinaryOutput);
  if (!binary.ok()) return binary.status();
  read.form.binary_by_default = binary->value_or(false);
  SharedInputs shared(shared_memory, limits.client, limits.ledger);
  absl::Status status = ReadInputs(*request, Binary(body, *json_bytes), shared, read.call);
  read.call.charged_bytes += static_cast<int64_t>(charged);
  if (status.ok()) status = ReadOutputs(*request, read.call, read.form);
  if (status.ok()) status = ApplyAll(request->parameters, read.call);
  if (!status.ok()) return status;
  return read;
}

namespace {

// The JSON of a body that is short enough to be searched.
std::optional<absl::string_view> JsonToSearch(const HttpHeaders& headers, absl::string_view body) {
  const auto json_bytes = JsonBytes(FindHeader(headers, kJsonLengthHeader), body.size());
  if (!json_bytes || *json_bytes > kMaxSearchedJson) return std::nullopt;
  return body.substr(0, *json_bytes);
}

// Whether the JSON may have a string with `text` in it, which may be escaped.
bool MayName(absl::string_view json, absl::string_view text) {
  return absl::StrContains(json, text) || absl::StrContains(json, '\\');
}

}  // namespace

size_t RestBytesToParse(const HttpHeaders& headers, absl::string_view body) {
  const auto json = JsonToSearch(headers, body);
  return json && !MayName(*json, "BYTES") ? json->size() : body.size();
}

size_t RestBytesToRead(const HttpHeaders& headers, absl::string_view body) {
  const auto json = JsonToSearch(headers, body);
  if (!json || MayName(*json, kSharedMemory)) return SIZE_MAX;
  return RestBytesToParse(headers, body);
}

absl::StatusOr<bool> IsRawBody(const RestBody& body) {
  const auto json_bytes = JsonBytes(body);
  if (!json_bytes.ok()) return json_bytes.status();
  return body.json_length && *json_bytes == 0;
}

namespace {

// The input's shape, with its one free extent computed from the size of `whole` bytes. If another extent than
// the batch is free, the batch is one, as in Triton.
absl::StatusOr<std::vector<int64_t>> ShapeOf(const TensorDescription& input, size_t whole, bool batched) {
  std::vector<int64_t> shape = input.shape;
  if (batched && std::count(shape.begin(), shape.end(), -1) > 1) shape[0] = 1;
  const auto open = std::find(shape.begin(), shape.end(), -1);
  const auto why = [&](absl::string_view problem) {
    return Invalid(
        absl::StrCat("input ", Shown(input.name)),
        absl::StrCat("its shape is ", ShapeText(input.shape), ", of ", NameOf(input.type), "; ", whole,
                     " bytes without JSON ", problem, ". Send JSON with its shape, and ", kJsonLengthHeader));
  };
  if (open == shape.end()) return shape;
  if (std::count(shape.begin(), shape.end(), -1) > 1) return why("do not determine its extents");
  *open = 1;
  const auto row = ElementCount(shape);
  const size_t row_bytes = row.ok() ? static_cast<size_t>(*row) * SizeOf(input.type) : 0;
  if (row_bytes == 0 || whole % row_bytes != 0) return why(absl::StrCat("are not rows of ", row_bytes));
  *open = static_cast<int64_t>(whole / row_bytes);
  return shape;
}

// The element's length prefix, followed by the element.
BytePieces OneElement(const RestBody& body) {
  struct Kept {
    std::array<char, 4> length;
    std::shared_ptr<const void> body;
  };
  const auto kept = std::make_shared<Kept>();
  const auto size = static_cast<uint32_t>(body.bytes.size());
  for (size_t i = 0; i < kept->length.size(); ++i) kept->length[i] = static_cast<char>(size >> (8 * i));
  kept->body = body.owner;
  BytePieces element({kept->length.data(), kept->length.size()}, kept);
  element.Add({body.bytes.data(), body.bytes.size()});
  return element;
}

}  // namespace

absl::StatusOr<RestCall> ReadRawRequest(const RestBody& body, absl::Span<const TensorDescription> inputs,
                                        bool batched) {
  if (inputs.size() != 1) {
    return Invalid(kJsonLengthHeader, absl::StrCat("0 requires a model with a single input; this one has ",
                                                   inputs.size(), "; send JSON that names them"));
  }
  const TensorDescription& input = inputs[0];
  Tensor tensor{.name = input.name, .type = input.type, .shape = {}, .data = {}};
  if (input.type == DataType::kBytes) {
    tensor.shape.assign(input.shape.size(), 1);
    if (body.bytes.size() > std::numeric_limits<uint32_t>::max())
      return absl::InvalidArgumentError("the body is too large");
    tensor.data = OneElement(body);
  } else {
    auto shape = ShapeOf(input, body.bytes.size(), batched);
    if (!shape.ok()) return shape.status();
    tensor.shape = *std::move(shape);
    tensor.data = BytePieces({body.bytes.data(), body.bytes.size()}, body.owner);
    if (absl::Status fits = CheckBytes(tensor); !fits.ok())
      return About(absl::StrCat("input ", Shown(input.name)), fits);
  }
  RestCall read;
  read.call.inputs.push_back(std::move(tensor));
  read.call.charged_bytes = static_cast<int64_t>(body.bytes.size());
  read.form.binary_by_default = true;
  return read;
}

}  // namespace saccade::server
