#include "client/cli/commands/actions.h"

#include <algorithm>
#include <filesystem>
#include <variant>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/class_names.h"
#include "client/cli/commands/pictures.h"
#include "client/cli/commands/request_options.h"
#include "client/cli/drawing/drawing.h"
#include "client/cli/input/inputs.h"
#include "client/cli/output/failure.h"

namespace saccade::client {
namespace {

bool IsFolder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

// Fills `clips` from the command's inputs. A clip is named after its folder or its first picture. Returns
// kExitOk, or the exit code after printing an error.
int FindClips(const ActionsCommand& command, Console& console, std::vector<Item>& clips) {
  const std::vector<std::string>& inputs = command.inputs;
  if (!command.frames) {
    const auto videos = ExpandInputs(inputs, kVideoFiles);
    if (!videos.ok()) {
      Complain(console, absl::StrCat(videos.status().message(),
                                     "; to send pictures or folders of pictures, use --frames"));
      return kExitFailure;
    }
    for (const std::string& video : *videos) clips.push_back({{video}, {video}});
    return kExitOk;
  }
  const auto folders = std::count_if(inputs.begin(), inputs.end(), IsFolder);
  if (folders == 0) {
    clips.push_back({{inputs.front()}, inputs});
    return kExitOk;
  }
  if (folders != static_cast<std::ptrdiff_t>(inputs.size())) {
    Complain(console,
             "--frames takes either the pictures of one clip or folders with one clip each, not both");
    return kExitUsage;
  }
  for (const std::string& folder : inputs) {
    auto files = FilesIn(folder, kPictureFiles);
    if (!files.ok()) {
      Complain(console, absl::StrCat(folder, " ", files.status().message()));
      return kExitFailure;
    }
    clips.push_back({{folder}, *std::move(files)});
  }
  return kExitOk;
}

}  // namespace

int RunActions(const ActionsCommand& command, Console& console) {
  ActionOptions options;
  options.request = RequestOf(command);
  options.score_threshold = command.score_threshold;
  options.top_k = command.top_k;
  std::vector<Item> clips;
  int found = FindClips(command, console, clips);
  if (found == kExitOk) found = FindClasses(command, console, options.classes);
  if (found != kExitOk) return found;

  Task task;
  task.name = "actions";
  if (!command.frames) task.expected = "a video file; to send pictures or folders of pictures, use --frames";
  task.ask = [&](Client& client, const Pictures& pictures) -> absl::StatusOr<AnyAnswer> {
    if (!command.frames) return client.Actions(command.model, pictures[0], options);
    return client.Actions(command.model, pictures, command.frames_per_second, options);
  };
  task.write = [](const Pictures&, AnyAnswer& answer, const std::string& stem,
                  std::vector<Written>& written) {
    const std::string path = absl::StrCat(stem, ".timeline.png");
    const absl::Status status = DrawTimeline(std::get<Actions>(answer), path);
    if (status.ok()) written.push_back({"timeline", path});
    return status;
  };
  return RunItems(command, clips, task, console);
}

}  // namespace saccade::client
