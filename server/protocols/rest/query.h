// The query of a URL, and the fields of a PredictRequest in it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/api/description.h"
#include "saccade/v1/vision.pb.h"

namespace saccade::server {

// Names and values, decoded, in the order in which they were sent.
using QueryParameters = std::vector<std::pair<std::string, std::string>>;

// Splits "a=1&b=x%20y". '+' is a space, as in forms; a name without '=' has an empty value. INVALID_ARGUMENT
// if a '%' is not followed by two hexadecimal digits, if a text is not UTF-8, or if there are more than 256
// parameters, or more than 64 that are not lists.
absl::StatusOr<QueryParameters> ParseQuery(absl::string_view query);

// Sets the fields that requests for all tasks have: "version", "region.x", "explain.layer", ... Removes their
// parameters, and leaves the others. INVALID_ARGUMENT names the parameter.
absl::Status TakeCommonParameters(QueryParameters& parameters, v1::PredictRequest* message);

// Sets the options of `task` that the parameters name: "score_threshold", "size.width", ... Each is given
// once; a list is given by repeating its parameter. Names may also be in camelCase. INVALID_ARGUMENT names
// the parameter; for an unknown one it lists those that there are.
absl::Status SetOptions(const QueryParameters& parameters, models::Task task, v1::PredictRequest* message);

// A parameter that the two functions above know.
struct KnownParameter {
  std::string name;
  const google::protobuf::FieldDescriptor* field;
};

// Those of all tasks, and those of `task` alone.
std::vector<KnownParameter> CommonParameters();
std::vector<KnownParameter> OptionsOf(models::Task task);

}  // namespace saccade::server
