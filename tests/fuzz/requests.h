// Properties that both protocols guarantee for an accepted request.
#pragma once

#include <google/protobuf/stubs/logging.h>

#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "models/api/description.h"
#include "server/core/request.h"
#include "tests/fuzz/harness.h"

namespace saccade::fuzz {

// Protobuf would print a line for every message that it rejects.
inline void QuietProtobuf() { google::protobuf::SetLogHandler(nullptr); }

inline void Touch(const server::Picture& picture) {
  std::visit([](const auto& any) { Touch(any.data.bytes); }, picture);
}

inline void Touch(const server::Input& input) {
  if (const auto* pictures = std::get_if<std::vector<server::Picture>>(&input)) {
    for (const server::Picture& picture : *pictures) Touch(picture);
    return;
  }
  for (const std::string_view piece : std::get<server::TensorInput>(input).data.pieces()) Touch(piece);
}

inline void CheckRefusal(const absl::Status& status) {
  Check(absl::IsInvalidArgument(status) || absl::IsUnimplemented(status),
        "a bad request is INVALID_ARGUMENT or UNIMPLEMENTED");
  Check(!status.message().empty(), "an error says what is wrong");
}

// Calls `handle` with one model of each task.
template <typename Do>
void ForEachTask(const Do& handle) {
  using models::Task;
  for (const Task task : {Task::kClassification, Task::kDetection, Task::kSegmentation, Task::kStereo,
                          Task::kActions, Task::kRestoration}) {
    models::Description model;
    model.task = task;
    model.classes = 4;
    handle(model);
  }
}

}  // namespace saccade::fuzz
