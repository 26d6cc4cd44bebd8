#include "client/cli/commands/depth.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/pictures.h"
#include "client/cli/commands/request_options.h"
#include "client/cli/drawing/disparity_map.h"
#include "client/cli/drawing/drawing.h"
#include "client/cli/output/output_file.h"
#include "client/cli/output/pfm.h"

namespace saccade::client {
namespace {

absl::Status WriteDepth(AnyAnswer& any, const std::string& stem, std::vector<Written>& written) {
  auto& answer = std::get<DepthMap>(any);
  const auto values = ReadDisparity(answer);
  if (!values.ok()) return values.status();
  const std::string colored = absl::StrCat(stem, ".depth.colored.png");
  absl::Status status = DrawDepth(answer, *values, colored);
  if (!status.ok()) return status;
  written.push_back({"colored", colored});
  status = WriteAs("depth_pfm", absl::StrCat(stem, ".depth.pfm"), ToPfm(answer.width, answer.height, *values),
                   written);
  answer.map.clear();
  return status;
}

}  // namespace

int RunDepth(const DepthCommand& command, Console& console) {
  DepthOptions options;
  options.request = RequestOf(command);
  // Without --output the map is not used, and a PNG is the smaller answer.
  options.format = command.output.empty() ? DisparityFormat::kPng16 : DisparityFormat::kFloat;
  options.size = ParseOutputSize(command.size);
  Task task;
  task.name = "depth";
  task.ask = [&](Client& client, const Pictures& pictures) -> absl::StatusOr<AnyAnswer> {
    auto answer = client.Depth(command.model, pictures[0], options);
    if (answer.ok() && command.output.empty()) answer->map.clear();
    return answer;
  };
  task.write = [](const Pictures&, AnyAnswer& answer, const std::string& stem,
                  std::vector<Written>& written) { return WriteDepth(answer, stem, written); };
  return RunPictures(command, task, console);
}

}  // namespace saccade::client
