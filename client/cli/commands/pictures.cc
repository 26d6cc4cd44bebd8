#include "client/cli/commands/pictures.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/batch.h"
#include "client/cli/commands/connect.h"
#include "client/cli/commands/request_options.h"
#include "client/cli/input/inputs.h"
#include "client/cli/output/failure.h"
#include "client/cli/output/output_file.h"
#include "client/cli/output/progress_bar.h"
#include "client/cli/output/report.h"

namespace saccade::client {
namespace {

bool CheckStandardInput(const InputsCommand& command, Console& console) {
  if (std::count(command.inputs.begin(), command.inputs.end(), "-") < 2) return true;
  Complain(console, "'-' (standard input) was given more than once; it can be read once only");
  return false;
}

}  // namespace

int RunItems(const PicturesCommand& command, const std::vector<Item>& items, const Task& task,
             Console& console) {
  if (!CheckStandardInput(command, console)) return kExitUsage;
  const auto client = ConnectOrComplain(console, command.connection);
  if (client == nullptr) return kExitUsage;
  if (!MakeOutputFolder(command.output, console)) return kExitFailure;

  Batch batch(command, items, task, *client, console.in);
  Report report(ReportOf(command), console);
  ProgressBar bar(console, command.model, !command.quiet && batch.size() > 1);
  for (size_t i = 0; i < batch.size(); ++i) {
    bar.Show(absl::StrCat(i, " of ", batch.size()),
             static_cast<double>(i) / static_cast<double>(batch.size()));
    Outcome outcome = batch.Take(i);
    bar.Hide();
    if (!report.Add(std::move(outcome))) return kExitFailure;
  }
  return report.Finish();
}

int RunPictures(const PicturesCommand& command, const Task& task, Console& console) {
  const auto expanded = ExpandInputs(command.inputs, kPictureFiles);
  if (!expanded.ok()) {
    Complain(console, expanded.status().message());
    return kExitFailure;
  }
  const std::vector<std::string>& inputs = *expanded;
  if (inputs.size() % task.pictures_per_item != 0) {
    Complain(console, absl::StrCat("pictures come in pairs, left and right in turn; there are ",
                                   inputs.size(), ", so ", inputs.back(), " has no right picture"));
    return kExitUsage;
  }
  std::vector<Item> items;
  for (size_t at = 0; at < inputs.size(); at += task.pictures_per_item) {
    const std::vector<std::string> files(inputs.begin() + at, inputs.begin() + at + task.pictures_per_item);
    items.push_back({files, files});
  }
  return RunItems(command, items, task, console);
}

}  // namespace saccade::client
