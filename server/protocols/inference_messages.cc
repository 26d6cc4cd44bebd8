#include "server/protocols/inference_messages.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/base/internal/endian.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace saccade::server {
namespace {

constexpr absl::string_view kInput = "image";
constexpr absl::string_view kOutput = "logits";
constexpr absl::string_view kPlatform = "saccade";
constexpr int64_t kMaxElements = int64_t{1} << 40;

using InputTensor = inference::ModelInferRequest::InferInputTensor;

std::string Shown(absl::string_view text) {
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, 128)), "'");
}

absl::Status Invalid(absl::string_view subject, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(subject, ": ", problem));
}

absl::Status InvalidInput(absl::string_view problem) { return Invalid("input 'image'", problem); }

absl::StatusOr<int64_t> ElementsOf(const InputTensor& tensor) {
  int64_t elements = 1;
  for (const int64_t extent : tensor.shape()) {
    if (extent < 0 || (extent > 0 && elements > kMaxElements / extent)) {
      return InvalidInput(
          absl::StrCat("the shape [", absl::StrJoin(tensor.shape(), ","), "] is not one of a tensor"));
    }
    elements *= extent;
  }
  return elements;
}

// Raw contents, or null if the tensor's elements are typed.
absl::StatusOr<const std::string*> RawContents(const inference::ModelInferRequest& message) {
  if (message.raw_input_contents().empty()) return nullptr;
  if (message.raw_input_contents_size() != 1) {
    return Invalid("raw_input_contents", absl::StrCat("has ", message.raw_input_contents_size(),
                                                      " entries; expected one per input, which is 1"));
  }
  if (message.inputs(0).has_contents()) {
    return InvalidInput("has both contents and raw_input_contents; send one of them");
  }
  return &message.raw_input_contents(0);
}

absl::StatusOr<Input> FromFloats(const InputTensor& tensor, const std::string* raw) {
  auto elements = ElementsOf(tensor);
  if (!elements.ok()) return elements.status();
  std::string_view bytes;
  if (raw != nullptr) {
    bytes = *raw;
  } else {
    const auto& floats = tensor.contents().fp32_contents();
    bytes = {reinterpret_cast<const char*>(floats.data()), floats.size() * sizeof(float)};
  }
  if (static_cast<int64_t>(bytes.size()) != *elements * static_cast<int64_t>(sizeof(float))) {
    return InvalidInput(absl::StrCat("holds ", bytes.size(), " bytes; FP32 of shape [",
                                     absl::StrJoin(tensor.shape(), ","), "] is ", *elements * sizeof(float)));
  }
  return TensorInput{.shape = {tensor.shape().begin(), tensor.shape().end()},
                     .data = {.owner = nullptr, .bytes = bytes}};
}

// Elements of a BYTES tensor: each a 4-byte little-endian length and as many bytes.
absl::StatusOr<std::vector<std::string_view>> SplitBytes(std::string_view raw, int64_t expected) {
  std::vector<std::string_view> elements;
  while (!raw.empty()) {
    if (raw.size() < 4) return InvalidInput("the BYTES contents end within an element's 4-byte length");
    const uint32_t length = absl::little_endian::Load32(raw.data());
    raw.remove_prefix(4);
    if (length > raw.size()) {
      return InvalidInput(absl::StrCat("element ", elements.size(), " says it has ", length, " bytes, but ",
                                       raw.size(), " are left"));
    }
    if (static_cast<int64_t>(elements.size()) == expected) break;
    elements.push_back(raw.substr(0, length));
    raw.remove_prefix(length);
  }
  if (static_cast<int64_t>(elements.size()) != expected || !raw.empty()) {
    return InvalidInput(absl::StrCat("the shape says ", expected, " BYTES elements; the contents hold ",
                                     raw.empty() ? "fewer" : "more"));
  }
  return elements;
}

absl::StatusOr<Input> FromBytes(const InputTensor& tensor, const std::string* raw) {
  auto count = ElementsOf(tensor);
  if (!count.ok()) return count.status();
  const int rank = tensor.shape_size();
  if ((rank != 1 && rank != 2) || (rank == 2 && tensor.shape(1) != 1)) {
    return InvalidInput(absl::StrCat("the shape of BYTES is [", absl::StrJoin(tensor.shape(), ","),
                                     "], expected [n] or [n,1], one encoded picture an element"));
  }
  std::vector<std::string_view> elements;
  if (raw != nullptr) {
    auto split = SplitBytes(*raw, *count);
    if (!split.ok()) return split.status();
    elements = *std::move(split);
  } else {
    const auto& typed = tensor.contents().bytes_contents();
    elements.assign(typed.begin(), typed.end());
    if (static_cast<int64_t>(elements.size()) != *count) {
      return InvalidInput(
          absl::StrCat("the shape says ", *count, " elements, bytes_contents has ", elements.size()));
    }
  }
  std::vector<Picture> pictures;
  pictures.reserve(elements.size());
  for (const std::string_view element : elements) {
    pictures.push_back(EncodedPicture{.data = {.owner = nullptr, .bytes = element}});
  }
  return pictures;
}

absl::StatusOr<Input> InputOf(const inference::ModelInferRequest& message) {
  if (message.inputs_size() != 1) {
    return Invalid("inputs", absl::StrCat("has ", message.inputs_size(), " tensors; expected 1, 'image'"));
  }
  const InputTensor& tensor = message.inputs(0);
  if (tensor.name() != kInput) {
    return Invalid("inputs",
                   absl::StrCat("no input is named ", Shown(tensor.name()), "; the model's is 'image'"));
  }
  if (tensor.parameters().contains("shared_memory_region")) {
    return absl::UnimplementedError("input 'image': shared_memory_region is not served; send the bytes");
  }
  auto raw = RawContents(message);
  if (!raw.ok()) return raw.status();
  if (tensor.datatype() == "FP32") return FromFloats(tensor, *raw);
  if (tensor.datatype() == "BYTES") return FromBytes(tensor, *raw);
  return InvalidInput(absl::StrCat("the datatype is ", Shown(tensor.datatype()),
                                   ", expected FP32 (normalised pixels) or BYTES (encoded pictures)"));
}

absl::Status CheckOutputs(const inference::ModelInferRequest& message) {
  for (const auto& output : message.outputs()) {
    if (output.name() != kOutput) {
      return Invalid("outputs",
                     absl::StrCat("no output is named ", Shown(output.name()), "; the model's is 'logits'"));
    }
    for (const absl::string_view parameter : {"classification", "shared_memory_region"}) {
      if (output.parameters().contains(std::string(parameter))) {
        return absl::UnimplementedError(
            absl::StrCat("output 'logits': the parameter ", parameter, " is not served"));
      }
    }
  }
  return absl::OkStatus();
}

// Triton's reserved parameters: what would change the answer is refused, the rest is advice.
absl::Status ApplyParameters(const inference::ModelInferRequest& message, absl::Time arrival,
                             Request& request) {
  for (const auto& [name, value] : message.parameters()) {
    if (name == "sequence_id" || name == "sequence_start" || name == "sequence_end") {
      return absl::UnimplementedError(absl::StrCat("parameter ", name, ": sequences are not served"));
    }
    if (name != "timeout" && name != "priority") continue;
    const bool is_unsigned = value.parameter_choice_case() == inference::InferParameter::kUint64Param;
    if (!is_unsigned && value.parameter_choice_case() != inference::InferParameter::kInt64Param) {
      return Invalid(absl::StrCat("parameter ", name), "expected an integer");
    }
    const uint64_t number =
        is_unsigned ? value.uint64_param() : static_cast<uint64_t>(std::max<int64_t>(0, value.int64_param()));
    constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
    if (name == "timeout" && number > 0) {
      const auto timeout = absl::Microseconds(static_cast<int64_t>(std::min(number, kMost)));
      request.deadline = std::min(request.deadline, arrival + timeout);
    } else if (name == "priority") {
      // Triton counts priorities from 1, the most urgent, upwards; 0 is the default.
      request.priority = -static_cast<int>(std::min<uint64_t>(number, 1000));
    }
  }
  return absl::OkStatus();
}

void AddTensor(absl::string_view name, absl::string_view datatype, std::initializer_list<int64_t> shape,
               inference::ModelMetadataResponse::TensorMetadata* tensor) {
  tensor->set_name(std::string(name));
  tensor->set_datatype(std::string(datatype));
  for (const int64_t extent : shape) tensor->add_shape(extent);
}

}  // namespace

absl::StatusOr<int64_t> ParseVersion(absl::string_view version) {
  int64_t number = 0;
  if (version.empty()) return number;
  if (!absl::SimpleAtoi(version, &number) || number < 1) {
    return Invalid("version", absl::StrCat("is ", Shown(version),
                                           "; expected a positive integer, or nothing for the latest"));
  }
  return number;
}

absl::StatusOr<Request> FromMessage(const inference::ModelInferRequest& message, absl::Time arrival,
                                    absl::Time deadline) {
  Request request;
  request.model = message.model_name();
  request.id = message.id();
  request.protocol = "oip";
  request.input_name = "input 'image'";
  request.arrival = arrival;
  request.deadline = deadline;
  auto version = ParseVersion(message.model_version());
  if (!version.ok()) return version.status();
  request.version = *version;
  auto input = InputOf(message);
  if (!input.ok()) return input.status();
  request.input = *std::move(input);
  if (absl::Status status = CheckOutputs(message); !status.ok()) return status;
  if (absl::Status status = ApplyParameters(message, arrival, request); !status.ok()) return status;
  return request;
}

void ToMessage(const Response& response, const inference::ModelInferRequest& request,
               inference::ModelInferResponse* message) {
  message->set_model_name(response.model);
  message->set_model_version(absl::StrCat(response.version));
  message->set_id(request.id());
  auto* output = message->add_outputs();
  output->set_name(std::string(kOutput));
  output->set_datatype("FP32");
  output->add_shape(static_cast<int64_t>(response.results.size()));
  output->add_shape(response.description->classes);
  std::string* raw = message->add_raw_output_contents();
  raw->reserve(response.results.size() * response.description->classes * sizeof(float));
  for (const models::TaskResult& result : response.results) {
    const auto& logits = std::get<models::Classification>(result).logits;
    raw->append(reinterpret_cast<const char*>(logits.data()), logits.size() * sizeof(float));
  }
}

void ToMessage(const ModelSnapshot& snapshot, inference::ModelMetadataResponse* message) {
  const models::Description& model = snapshot.description;
  message->set_name(snapshot.name);
  message->add_versions(absl::StrCat(snapshot.version));
  message->set_platform(std::string(kPlatform));
  AddTensor(kInput, "FP32", {-1, 3, model.input.height, model.input.width}, message->add_inputs());
  AddTensor(kOutput, "FP32", {-1, model.classes}, message->add_outputs());
}

}  // namespace saccade::server
