#include "client/cli/commands/segment.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/pictures.h"
#include "client/cli/commands/request_options.h"
#include "client/cli/drawing/drawing.h"
#include "client/cli/output/output_file.h"

namespace saccade::client {
namespace {

absl::Status WriteSegmentation(const Pictures& pictures, AnyAnswer& any, const std::string& stem,
                               std::vector<Written>& written) {
  auto& answer = std::get<Segmentation>(any);
  const std::string overlay = absl::StrCat(stem, ".segment.overlay.png");
  absl::Status status = DrawSegmentation(pictures[0], answer, overlay);
  if (!status.ok()) return status;
  written.push_back({"overlay", overlay});
  status = WriteAs("label_map", absl::StrCat(stem, ".labels.png"), answer.label_map, written);
  answer.label_map.clear();
  return status;
}

}  // namespace

int RunSegment(const SegmentCommand& command, Console& console) {
  SegmentOptions options;
  options.request = RequestOf(command);
  // Without --output only the areas are needed, which makes the response smaller.
  options.format = command.output.empty() ? LabelMapFormat::kNone : LabelMapFormat::kPng;
  options.size = ParseOutputSize(command.size);
  Task task;
  task.name = "segment";
  task.ask = [&](Client& client, const Pictures& pictures) -> absl::StatusOr<AnyAnswer> {
    return client.Segment(command.model, pictures[0], options);
  };
  task.write = WriteSegmentation;
  return RunPictures(command, task, console);
}

}  // namespace saccade::client
