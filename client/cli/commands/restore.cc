#include "client/cli/commands/restore.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/connect.h"
#include "client/cli/commands/request_options.h"
#include "client/cli/drawing/drawing.h"
#include "client/cli/input/inputs.h"
#include "client/cli/input/volume_file.h"
#include "client/cli/output/failure.h"
#include "client/cli/output/output_file.h"
#include "client/cli/output/progress_bar.h"
#include "client/cli/output/report.h"
#include "client/cli/output/tiff.h"

namespace saccade::client {
namespace {

absl::Status WriteVolume(const Restoration& answer, bool raw, const std::string& path) {
  if (raw) return WriteFile(path, {answer.voxels});
  const auto head = TiffHead(answer.shape, answer.min, answer.max);
  if (!head.ok()) return head.status();
  return WriteFile(path, {*head, answer.voxels});
}

// Writes the volume before the plane: if there is disk space for one file only, the volume is the important
// one.
absl::Status WriteRestoration(const Restoration& answer, bool raw, const std::string& stem,
                              std::vector<Written>& written) {
  const std::string volume = absl::StrCat(stem, ".restored", raw ? ".raw" : ".tif");
  absl::Status status = WriteVolume(answer, raw, volume);
  if (!status.ok()) return status;
  written.push_back({"restored", volume});
  const std::string plane = absl::StrCat(stem, ".restored.png");
  status = DrawVolume(answer, plane);
  if (status.ok()) written.push_back({"plane", plane});
  return status;
}

// Restores one volume. Its voxels are in the outcome's answer.
Outcome Ask(const RestoreCommand& command, const RestoreOptions& options, Client& client, Console& console,
            const std::string& path) {
  Outcome outcome;
  outcome.files = {path};
  auto source = OpenVolume(path, command.shape);
  if (!source.ok()) {
    outcome.answer = source.status();
    outcome.unreadable = path;
    return outcome;
  }
  ProgressBar bar(console, path, !command.quiet);
  const auto all = static_cast<double>(source->bytes);
  source->read = [&, read = std::move(source->read), sent = int64_t{0}](
                     char* to, size_t max) mutable -> absl::StatusOr<size_t> {
    bar.Show("sending", static_cast<double>(sent) / all);
    const absl::StatusOr<size_t> count = read(to, max);
    if (count.ok()) {
      sent += static_cast<int64_t>(*count);
    } else {
      outcome.unreadable = path;
    }
    return count;
  };
  const auto show = [&bar](double done) {
    bar.Show("restoring", done);
    return true;
  };
  outcome.answer = client.Restore(command.model, *source, options, show);
  return outcome;
}

}  // namespace

int RunRestore(const RestoreCommand& as_given, Console& console) {
  RestoreCommand command = as_given;
  if (!command.shape) {  // raw voxels have no file extension of their own
    auto files = ExpandInputs(as_given.inputs, kVolumeFiles);
    if (!files.ok()) {
      Complain(console, files.status().message());
      return kExitFailure;
    }
    command.inputs = *std::move(files);
  }
  const auto client = ConnectOrComplain(console, command.connection);
  if (client == nullptr) return kExitUsage;
  if (!MakeOutputFolder(command.output, console)) return kExitFailure;
  RestoreOptions options;
  options.request = RequestOf(command);
  options.type = command.output_type;
  const std::vector<std::string> stems = OutputStems(command.output, command.inputs);
  Report report(ReportOf(command), console);
  for (size_t i = 0; i < command.inputs.size(); ++i) {
    Outcome outcome = Ask(command, options, *client, console, command.inputs[i]);
    if (outcome.answer.ok()) {
      auto& answer = std::get<Restoration>(*outcome.answer);
      outcome.write_status = WriteRestoration(answer, command.raw, stems[i], outcome.written);
      // The report keeps the outcomes until the end; voxels would exhaust the memory.
      answer.voxels = std::string();
    }
    if (!report.Add(std::move(outcome))) return kExitFailure;
  }
  return report.Finish();
}

}  // namespace saccade::client
