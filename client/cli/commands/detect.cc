#include "client/cli/commands/detect.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/class_names.h"
#include "client/cli/commands/pictures.h"
#include "client/cli/commands/request_options.h"
#include "client/cli/drawing/drawing.h"
#include "client/cli/output/failure.h"

namespace saccade::client {

int RunDetect(const DetectCommand& command, Console& console) {
  if (command.mask_form != MaskForm::kRle &&
      (command.format == Format::kCoco || command.format == Format::kRoboflow)) {
    Complain(
        console,
        "--format coco and roboflow need masks as run lengths; leave --masks out, or set it to rle or none");
    return kExitUsage;
  }
  if (command.no_masks && command.mask_threshold) {
    Complain(console, "--mask-threshold needs masks; leave out either it or --masks none");
    return kExitUsage;
  }
  DetectOptions options;
  options.request = RequestOf(command);
  options.score_threshold = command.score_threshold;
  options.top_k = command.top_k;
  options.masks = !command.no_masks;
  options.mask_form = command.mask_form;
  options.mask_threshold = command.mask_threshold;
  const int found = FindClasses(command, console, options.classes);
  if (found != kExitOk) return found;

  Task task;
  task.name = "detect";
  task.ask = [&](Client& client, const Pictures& pictures) -> absl::StatusOr<AnyAnswer> {
    return client.Detect(command.model, pictures[0], options);
  };
  task.write = [](const Pictures& pictures, AnyAnswer& answer, const std::string& stem,
                  std::vector<Written>& written) {
    const std::string path = absl::StrCat(stem, ".detect.overlay.png");
    const absl::Status status = DrawDetections(pictures[0], std::get<Detections>(answer), path);
    if (status.ok()) written.push_back({"overlay", path});
    return status;
  };
  return RunPictures(command, task, console);
}

}  // namespace saccade::client
