#include "server/protocols/inference_messages.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/protocols/inference_errors.h"
#include "server/protocols/inference_inputs.h"
#include "server/protocols/inference_outputs.h"

namespace saccade::server {
namespace {

constexpr absl::string_view kPlatform = "saccade";

// Triton's reserved parameters: what would change the answer is refused, the rest is advice.
absl::Status ApplyParameters(const inference::ModelInferRequest& message, Request& request) {
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
      request.timeout = absl::Microseconds(static_cast<int64_t>(std::min(number, kMost)));
    } else if (name == "priority") {
      // Triton counts priorities from 1, the most urgent, upwards; 0 is the default.
      constexpr uint64_t kLast = std::numeric_limits<int>::max();
      request.priority = -static_cast<int>(std::min(number, kLast));
    }
  }
  return absl::OkStatus();
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

absl::StatusOr<Request> FromMessage(const InferenceRequest& received, absl::Time arrival,
                                    absl::Time deadline) {
  const inference::ModelInferRequest& message = received.fields;
  Request request;
  request.model = message.model_name();
  request.id = message.id();
  request.protocol = "oip";
  request.input_name = kInferenceInput;
  request.arrival = arrival;
  request.deadline = deadline;
  auto version = ParseVersion(message.model_version());
  if (!version.ok()) return version.status();
  request.version = *version;
  auto pictures = InputOf(received);
  if (!pictures.ok()) return pictures.status();
  request.input = std::move(pictures->input);
  request.views = pictures->views;
  request.accepts = [&message](const models::Description& model) { return CheckOutputs(message, model); };
  if (absl::Status status = ApplyParameters(message, request); !status.ok()) return status;
  return request;
}

absl::StatusOr<InferenceAnswer> ToAnswer(std::shared_ptr<const Response> response,
                                         const inference::ModelInferRequest& request) {
  InferenceAnswer answer{.response = std::move(response)};
  answer.fields.set_model_name(answer.response->model);
  answer.fields.set_model_version(absl::StrCat(answer.response->version));
  answer.fields.set_id(request.id());
  if (absl::Status added = AddOutputs(*answer.response, request, &answer); !added.ok()) return added;
  return answer;
}

void ToMessage(const ModelSnapshot& snapshot, inference::ModelMetadataResponse* message) {
  message->set_name(snapshot.name);
  message->add_versions(absl::StrCat(snapshot.version));
  message->set_platform(std::string(kPlatform));
  DescribeInput(snapshot.description.input, message->add_inputs());
  DescribeOutputs(snapshot.description, message);
}

}  // namespace saccade::server
