#include "client/cli/commands/embed.h"

#include "client/cli/commands/pictures.h"
#include "client/cli/commands/request_options.h"

namespace saccade::client {

int RunEmbed(const EmbedCommand& command, Console& console) {
  EmbedOptions options;
  options.request = RequestOf(command);
  Task task;
  task.name = "embed";
  task.ask = [&](Client& client, const Pictures& pictures) -> absl::StatusOr<AnyAnswer> {
    return client.Embed(command.model, pictures[0], options);
  };
  // There is nothing to draw.
  task.write = [](const Pictures&, AnyAnswer&, const std::string&, std::vector<Written>&) {
    return absl::OkStatus();
  };
  return RunPictures(command, task, console);
}

}  // namespace saccade::client
