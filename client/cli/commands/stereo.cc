#include "client/cli/commands/stereo.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/pictures.h"
#include "client/cli/commands/request_options.h"
#include "client/cli/drawing/disparity_map.h"
#include "client/cli/drawing/drawing.h"
#include "client/cli/output/failure.h"
#include "client/cli/output/output_file.h"
#include "client/cli/output/pfm.h"

namespace saccade::client {
namespace {

// With --pfm the daemon sends floats and the PNG is made here; without it the daemon's PNG is written
// unchanged.
absl::Status WriteDisparity(AnyAnswer& any, const std::string& stem, std::vector<Written>& written) {
  auto& answer = std::get<Disparity>(any);
  const auto values = ReadDisparity(answer);
  if (!values.ok()) return values.status();
  const std::string colored = absl::StrCat(stem, ".colored.png");
  absl::Status status = DrawDisparity(answer, *values, colored);
  if (!status.ok()) return status;
  written.push_back({"colored", colored});
  const std::string png = absl::StrCat(stem, ".disparity.png");
  if (answer.format == DisparityFormat::kFloat) {
    const auto bytes = DisparityPng(answer.width, answer.height, *values);
    if (!bytes.ok()) return bytes.status();
    status = WriteAs("disparity_png", png, *bytes, written);
    if (!status.ok()) return status;
    status = WriteAs("disparity_pfm", absl::StrCat(stem, ".disparity.pfm"),
                     ToPfm(answer.width, answer.height, *values), written);
  } else {
    status = WriteAs("disparity_png", png, answer.map, written);
  }
  answer.map.clear();
  return status;
}

}  // namespace

int RunStereo(const StereoCommand& command, Console& console) {
  if (command.pfm && command.output.empty()) {
    Complain(console, "--pfm needs --output, the folder to write to");
    return kExitUsage;
  }
  StereoOptions options;
  options.request = RequestOf(command);
  options.format = command.pfm ? DisparityFormat::kFloat : DisparityFormat::kPng16;
  options.size = ParseOutputSize(command.size);
  Task task;
  task.name = "stereo";
  task.pictures_per_item = 2;
  task.ask = [&](Client& client, const Pictures& pictures) -> absl::StatusOr<AnyAnswer> {
    auto answer = client.Stereo(command.model, pictures[0], pictures[1], options);
    if (answer.ok() && command.output.empty()) answer->map.clear();
    return answer;
  };
  task.write = [](const Pictures&, AnyAnswer& answer, const std::string& stem,
                  std::vector<Written>& written) { return WriteDisparity(answer, stem, written); };
  return RunPictures(command, task, console);
}

}  // namespace saccade::client
