#include "client/cli/commands/classify.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/pictures.h"
#include "client/cli/commands/request_options.h"
#include "client/cli/drawing/drawing.h"

namespace saccade::client {

int RunClassify(const ClassifyCommand& command, Console& console) {
  ClassifyOptions options;
  options.request = RequestOf(command);
  options.top_k = command.top_k;
  options.probability_threshold = command.probability_threshold;
  Task task;
  task.name = "classify";
  task.ask = [&](Client& client, const Pictures& pictures) -> absl::StatusOr<AnyAnswer> {
    return client.Classify(command.model, pictures[0], options);
  };
  task.write = [](const Pictures& pictures, AnyAnswer& answer, const std::string& stem,
                  std::vector<Written>& written) {
    const std::string path = absl::StrCat(stem, ".classify.overlay.png");
    const absl::Status status = DrawClasses(pictures[0], std::get<Classification>(answer), path);
    if (status.ok()) written.push_back({"overlay", path});
    return status;
  };
  return RunPictures(command, task, console);
}

}  // namespace saccade::client
