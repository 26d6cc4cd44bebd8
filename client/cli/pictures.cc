#include "client/cli/pictures.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/answer_text.h"
#include "client/cli/batch.h"
#include "client/cli/connect.h"
#include "client/cli/document.h"
#include "client/cli/failure.h"

namespace saccade::client {
namespace {

// What goes to err about one item. The same advice is not given twice in a row.
void Tell(const PicturesCommand& command, Console& console, const Outcome& outcome,
          std::string& last_advice) {
  const std::string name = NameOf(outcome.unreadable ? std::vector{*outcome.unreadable} : outcome.files);
  if (!outcome.answer.ok()) {
    const absl::Status& status = outcome.answer.status();
    const Explanation explanation = outcome.unreadable ? Explanation{std::string(status.message()), ""}
                                                       : Explain(status, command.connection.url);
    const bool advise = !explanation.advice.empty() && explanation.advice != last_advice;
    last_advice = explanation.advice;
    Complain(console, absl::StrCat(name, outcome.unreadable ? " " : ": ", explanation.what,
                                   advise ? ": " : "", advise ? explanation.advice : ""));
    return;
  }
  for (const Written& file : outcome.written) {
    if (!command.quiet) console.err << "wrote " << Printable(file.path) << std::endl;
  }
  if (!outcome.write_status.ok()) {
    Complain(console, absl::StrCat(name, ": no output: ", outcome.write_status.message()));
  }
}

void ShowProgress(const PicturesCommand& command, Console& console, size_t done, size_t all) {
  if (!console.progress || command.quiet || all < 2) return;
  console.err << '\r' << done << " of " << all << (done == all ? "\n" : "") << std::flush;
}

bool CheckPictures(const PicturesCommand& command, const Task& task, Console& console) {
  if (std::count(command.pictures.begin(), command.pictures.end(), "-") > 1) {
    Complain(console, "'-' stands for standard input, which holds one picture; it was given twice");
    return false;
  }
  if (command.pictures.size() % task.pictures_an_item != 0) {
    Complain(console, absl::StrCat("pictures come in pairs, left and right in turn; there are ",
                                   command.pictures.size(), ", so that ", command.pictures.back(),
                                   " has no right one"));
    return false;
  }
  return true;
}

bool MakeOutputDirectory(const PicturesCommand& command, Console& console) {
  if (command.output.empty()) return true;
  std::error_code error;
  std::filesystem::create_directories(command.output, error);
  if (!error) return true;
  Complain(console, absl::StrCat("--output ", command.output, ": ", error.message(), "; expected a folder"));
  return false;
}

}  // namespace

int RunPictures(const PicturesCommand& command, const Task& task, Console& console) {
  if (!CheckPictures(command, task, console)) return kExitUsage;
  const auto client = ConnectOrComplain(console, command.connection);
  if (client == nullptr) return kExitUsage;
  if (!MakeOutputDirectory(command, console)) return kExitFailure;

  Batch batch(command, task, *client, console.in);
  int exit_code = kExitOk;
  std::string last_advice;
  std::vector<Outcome> outcomes;
  for (size_t i = 0; i < batch.size(); ++i) {
    Outcome outcome = batch.Take(i);
    if (exit_code == kExitOk) exit_code = outcome.ExitCode();
    Tell(command, console, outcome, last_advice);
    if (command.format != Format::kText) {
      ShowProgress(command, console, i + 1, batch.size());
      outcomes.push_back(std::move(outcome));
    } else if (outcome.answer.ok()) {
      PrintText(console, outcome);
      if (!Flush(console)) return kExitFailure;
    }
  }
  if (command.format == Format::kText) return exit_code;
  console.out << Document(command.format, command.model, outcomes);
  return Flush(console) ? exit_code : kExitFailure;
}

RequestOptions RequestOf(const PicturesCommand& command) {
  RequestOptions options;
  options.version = command.version;
  options.priority = command.priority;
  return options;
}

}  // namespace saccade::client
