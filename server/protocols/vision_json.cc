#include "server/protocols/vision_json.h"

#include <google/protobuf/util/json_util.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace saccade::server {

absl::StatusOr<v1::PredictRequest> PredictRequestFromJson(absl::string_view text) {
  v1::PredictRequest request;
  const auto status = google::protobuf::util::JsonStringToMessage({text.data(), text.size()}, &request);
  if (!status.ok()) {
    const auto why = status.message();
    return absl::InvalidArgumentError(absl::StrCat("the body is not a saccade.v1.PredictRequest in JSON: ",
                                                   absl::string_view(why.data(), why.size())));
  }
  return request;
}

absl::StatusOr<std::string> ToProtobufJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  if (!status.ok()) {
    const auto why = status.message();
    return absl::InternalError(
        absl::StrCat("the answer cannot be written as JSON: ", absl::string_view(why.data(), why.size())));
  }
  return json;
}

}  // namespace saccade::server
