#include "client/cli/detect.h"

#include <algorithm>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/connect.h"
#include "client/cli/drawing/drawing.h"
#include "client/cli/failure.h"
#include "client/cli/pictures.h"

namespace saccade::client {
namespace {

// Names are looked up among the model's labels; the daemon is asked only if there is one. kExitOk, or the
// exit code after complaining.
int FindClasses(const DetectCommand& command, Console& console, std::vector<int64_t>& indices) {
  std::vector<std::string> labels;
  for (const std::string& name : command.classes) {
    int64_t index = 0;
    if (absl::SimpleAtoi(name, &index)) {
      indices.push_back(index);
      continue;
    }
    if (labels.empty()) {
      const auto client = ConnectOrComplain(console, command.connection);
      if (client == nullptr) return kExitUsage;
      auto model = client->GetModel(command.model, command.version);
      if (!model.ok()) return ComplainOf(console, command.connection, model.status());
      labels = std::move(model->labels);
    }
    const auto found = std::find(labels.begin(), labels.end(), name);
    if (found == labels.end()) {
      Complain(console, absl::StrCat("--class ", name, ": ",
                                     labels.empty() ? absl::StrCat("model '", command.model,
                                                                   "' has no class names; give an index")
                                                    : absl::StrCat("no class of model '", command.model,
                                                                   "' is called so; saccade models --json "
                                                                   "lists their names")));
      return kExitUsage;
    }
    indices.push_back(found - labels.begin());
  }
  return kExitOk;
}

}  // namespace

int RunDetect(const DetectCommand& command, Console& console) {
  DetectOptions options;
  options.request = RequestOf(command);
  options.score_threshold = command.score_threshold;
  options.top_k = command.top_k;
  options.masks = !command.no_masks;
  options.mask_threshold = command.mask_threshold;
  const int found = FindClasses(command, console, options.classes);
  if (found != kExitOk) return found;

  Task task;
  task.ask = [&](Client& client, const Pictures& pictures) -> absl::StatusOr<AnyAnswer> {
    return client.Detect(command.model, pictures[0], options);
  };
  task.write = [](const Pictures& pictures, AnyAnswer& answer, const std::string& stem,
                  std::vector<Written>& written) {
    const std::string path = absl::StrCat(stem, ".overlay.png");
    const absl::Status status = DrawDetections(pictures[0], std::get<Detections>(answer), path);
    if (status.ok()) written.push_back({"overlay", path});
    return status;
  };
  return RunPictures(command, task, console);
}

}  // namespace saccade::client
