#include "server/protocols/inference/messages.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/core/bytes_elements.h"
#include "server/core/errors.h"
#include "server/grpc/message_size.h"
#include "server/inference/parameters.h"
#include "server/inference/shared_inputs.h"
#include "server/protocols/answer_size.h"
#include "server/protocols/inference/typed_contents.h"

namespace saccade::server {
namespace {

using Message = inference::ModelInferRequest;
using Parameters = google::protobuf::Map<std::string, inference::InferParameter>;

Parameter ValueOf(const inference::InferParameter& parameter) {
  switch (parameter.parameter_choice_case()) {
    case inference::InferParameter::kBoolParam:
      return parameter.bool_param();
    case inference::InferParameter::kInt64Param:
      return parameter.int64_param();
    case inference::InferParameter::kUint64Param:
      return parameter.uint64_param();
    case inference::InferParameter::kDoubleParam:
      return parameter.double_param();
    default:
      return std::string_view(parameter.string_param());
  }
}

// The error of one input or output, which it names.
absl::Status Of(absl::string_view what, absl::string_view name, const absl::Status& error) {
  const std::string subject = absl::StrCat(what, " ", Shown(name));
  absl::Status why(error.code(), absl::StrCat(subject, ": ", error.message()));
  if (absl::IsInvalidArgument(why)) SetBadField(why, subject);
  return why;
}

template <typename To>
absl::Status ApplyAll(const Parameters& parameters, To& to) {
  for (const auto& [name, value] : parameters) {
    if (absl::Status status = ApplyParameter(name, ValueOf(value), to); !status.ok()) return status;
  }
  return absl::OkStatus();
}

bool IsShared(const Message::InferInputTensor& input) {
  return input.parameters().contains("shared_memory_region");
}

absl::Status CheckRaws(const InferenceRequest& received) {
  const Message& message = received.fields;
  if (received.raw_count == 0) return absl::OkStatus();
  const auto sent =
      message.inputs_size() - std::count_if(message.inputs().begin(), message.inputs().end(), IsShared);
  if (received.raw_count != sent || received.raw_count > InferenceRequest::kMaxRaws) {
    const char* const each = sent == message.inputs_size() ? "" : " that is not in shared memory";
    return Invalid("raw_input_contents",
                   absl::StrCat("has ", received.raw_count, " entries; expected one per input", each,
                                ", of which there ", sent == 1 ? "is " : "are ", sent));
  }
  for (const auto& input : message.inputs()) {
    if (!input.has_contents()) continue;
    return Invalid(absl::StrCat("input ", Shown(input.name())),
                   "has both contents and raw_input_contents; send one of them");
  }
  return absl::OkStatus();
}

absl::StatusOr<BytePieces> ReadShared(const Message::InferInputTensor& input, SharedInputs& shared) {
  std::optional<SharedRange> range;
  absl::Status status = ApplyAll(input.parameters(), range);
  if (status.ok() && input.has_contents()) {
    status = absl::InvalidArgumentError("has both contents and shared_memory_region; send one of them");
  }
  if (!status.ok()) return status;
  return shared.Read(range);
}

absl::StatusOr<BytePieces> BytesOf(const Message::InferInputTensor& input, DataType type,
                                   const BytePieces* raw, SharedInputs& shared) {
  if (IsShared(input)) return ReadShared(input, shared);
  if (raw != nullptr) return *raw;
  return server::BytesOf(input.contents(), type);
}

absl::StatusOr<Tensor> InputOf(const Message::InferInputTensor& input, const BytePieces* raw,
                               SharedInputs& shared) {
  const auto type = DataTypeOf(input.datatype());
  if (!type) {
    return absl::InvalidArgumentError(
        absl::StrCat("the datatype is ", Shown(input.datatype()),
                     ", expected a datatype of the protocol, such as FP32 or BYTES"));
  }
  if (static_cast<size_t>(input.shape_size()) > kMaxTensorExtents) {
    return absl::InvalidArgumentError(absl::StrCat("the shape has ", input.shape_size(), " extents; at most ",
                                                   kMaxTensorExtents, " are accepted"));
  }
  Tensor tensor{
      .name = input.name(), .type = *type, .shape = {input.shape().begin(), input.shape().end()}, .data = {}};
  auto bytes = BytesOf(input, *type, raw, shared);
  if (!bytes.ok()) return bytes.status();
  tensor.data = *std::move(bytes);
  if (absl::Status fits = CheckBytes(tensor); !fits.ok()) return fits;
  return tensor;
}

absl::Status ReadInputs(const InferenceRequest& received, SharedInputs& shared, TensorCall& call) {
  if (absl::Status raws = CheckRaws(received); !raws.ok()) return raws;
  const Message& message = received.fields;
  call.inputs.reserve(message.inputs_size());
  auto raw = received.raws.begin();
  for (const Message::InferInputTensor& input : message.inputs()) {
    const bool is_raw = received.raw_count > 0 && !IsShared(input);
    auto tensor = InputOf(input, is_raw ? &*raw++ : nullptr, shared);
    if (!tensor.ok()) {
      return Of("input", input.name(), tensor.status());
    }
    call.inputs.push_back(*std::move(tensor));
  }
  return absl::OkStatus();
}

absl::Status ReadOutputs(const Message& message, TensorCall& call) {
  for (const auto& output : message.outputs()) {
    WantedOutput wanted{.name = output.name()};
    absl::Status status = ApplyAll(output.parameters(), wanted);
    if (status.ok()) status = CheckParameters(wanted);
    if (!status.ok()) return Of("output", output.name(), status);
    call.outputs.push_back(std::move(wanted));
  }
  return absl::OkStatus();
}

void ToParameters(const SharedRange& range, Parameters& parameters) {
  parameters["shared_memory_region"].set_string_param(range.region);
  parameters["shared_memory_byte_size"].set_int64_param(static_cast<int64_t>(range.size));
  if (range.offset == 0) return;
  parameters["shared_memory_offset"].set_int64_param(static_cast<int64_t>(range.offset));
}

// Parameters are texts, so the bytes are in base64.
void SetAttestation(const Attestation& attestation, Parameters& parameters) {
  parameters["attestation"].set_string_param(attestation.statement);
  parameters["attestation_signature"].set_string_param(absl::Base64Escape(attestation.signature));
  parameters["attestation_public_key"].set_string_param(absl::Base64Escape(attestation.public_key));
}

}  // namespace

absl::StatusOr<TensorCall> FromMessage(const InferenceRequest& received, const SharedMemory& shared_memory,
                                       VersionReader version_of, absl::Time arrival, absl::Time deadline,
                                       absl::string_view client, ByteLedger* ledger) {
  const Message& message = received.fields;
  if (message.model_name().size() > kMaxModelName) {
    return Invalid("model_name", absl::StrCat("has ", message.model_name().size(), " bytes; at most ",
                                              kMaxModelName, " are accepted"));
  }
  if (absl::Status fits = CheckInferId(message.id()); !fits.ok()) return fits;
  TensorCall call;
  call.model = message.model_name();
  call.id = message.id();
  call.protocol = "oip";
  call.arrival = arrival;
  call.deadline = deadline;
  auto version = version_of(message.model_name(), message.model_version());
  if (!version.ok()) return version.status();
  call.version = *version;
  SharedInputs shared(shared_memory, client, ledger);
  absl::Status status = ReadInputs(received, shared, call);
  call.charged_bytes = shared.charged();
  if (status.ok()) status = ReadOutputs(message, call);
  if (status.ok()) status = ApplyAll(message.parameters(), call);
  if (!status.ok()) return status;
  return call;
}

InferenceAnswer ToAnswer(TensorAnswer answer, absl::string_view id) {
  InferenceAnswer message;
  message.fields.set_model_name(std::move(answer.model));
  message.fields.set_model_version(absl::StrCat(answer.version));
  message.fields.set_id(std::string(id));
  message.raws.reserve(answer.outputs.size());
  for (Tensor& tensor : answer.outputs) {
    auto* output = message.fields.add_outputs();
    output->set_name(std::move(tensor.name));
    output->set_datatype(std::string(NameOf(tensor.type)));
    output->mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
    if (tensor.shared) ToParameters(*tensor.shared, *output->mutable_parameters());
    message.raws.push_back(std::move(tensor.data));
  }
  if (answer.attestation) SetAttestation(*answer.attestation, *message.fields.mutable_parameters());
  message.charge = std::move(answer.charge);
  return message;
}

absl::Status CheckSize(const InferenceAnswer& answer, int64_t max) {
  return CheckAnswerSize(SizeOf(answer), max,
                         "request fewer outputs, or send fewer or smaller pictures per request");
}

void ToMessage(const ModelInterface& model, inference::ModelMetadataResponse* message) {
  message->set_name(model.name);
  for (const int64_t version : model.versions) message->add_versions(absl::StrCat(version));
  message->set_platform(model.platform);
  const auto describe = [](const TensorDescription& tensor, auto* described) {
    described->set_name(tensor.name);
    described->set_datatype(std::string(NameOf(tensor.type)));
    described->mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
  };
  for (const TensorDescription& input : model.inputs) describe(input, message->add_inputs());
  for (const TensorDescription& output : model.outputs) describe(output, message->add_outputs());
}

}  // namespace saccade::server
