#include "client/cli/report.h"

#include <filesystem>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/answer_text.h"
#include "client/cli/document.h"
#include "client/cli/failure.h"

namespace saccade::client {

bool Report::Add(Outcome outcome) {
  if (exit_code_ == kExitOk) exit_code_ = outcome.ExitCode();
  Tell(outcome);
  if (command_.format == Format::kJsonLines) {
    console_.out << DocumentLine(command_.model, outcome);
    return Flush(console_);
  }
  if (command_.format != Format::kText) {
    outcomes_.push_back(std::move(outcome));
  } else if (outcome.answer.ok()) {
    PrintText(console_, outcome);
    return Flush(console_);
  }
  return true;
}

int Report::Finish() {
  if (command_.format == Format::kText || command_.format == Format::kJsonLines) return exit_code_;
  console_.out << Document(command_.format, command_.model, outcomes_);
  return Flush(console_) ? exit_code_ : kExitFailure;
}

// Prints the messages of one outcome on err. The same advice is not printed twice in a row.
void Report::Tell(const Outcome& outcome) {
  const std::string name = NameOf(outcome.unreadable ? std::vector{*outcome.unreadable} : outcome.files);
  if (!outcome.answer.ok()) {
    const absl::Status& status = outcome.answer.status();
    const FailureText explanation = outcome.unreadable ? FailureText{std::string(status.message()), ""}
                                                       : TextOf(status, command_.connection.url);
    const bool advise = !explanation.advice.empty() && explanation.advice != last_advice_;
    last_advice_ = explanation.advice;
    Complain(console_, absl::StrCat(name, outcome.unreadable ? " " : ": ", explanation.what,
                                    advise ? ": " : "", advise ? explanation.advice : ""));
    return;
  }
  for (const Written& file : outcome.written) {
    if (!command_.quiet) console_.err << "wrote " << Printable(file.path) << std::endl;
  }
  if (!outcome.write_status.ok()) {
    Complain(console_, absl::StrCat(name, ": no output: ", outcome.write_status.message()));
  }
}

bool MakeOutputFolder(const InputsCommand& command, Console& console) {
  if (command.output.empty()) return true;
  std::error_code error;
  std::filesystem::create_directories(command.output, error);
  if (!error) return true;
  Complain(console, absl::StrCat("--output ", command.output, ": ", error.message(), "; expected a folder"));
  return false;
}

RequestOptions RequestOf(const InputsCommand& command) {
  RequestOptions options;
  options.version = command.version;
  options.priority = command.priority;
  return options;
}

RequestOptions RequestOf(const PicturesCommand& command) {
  RequestOptions options = RequestOf(static_cast<const InputsCommand&>(command));
  options.region = ParseRegion(command.region);
  if (command.explain) {
    options.explain = Explain{.layer = command.explain_layer, .max_maps = command.explain_maps};
    for (const std::string& at : command.explain_at) {
      if (const auto position = ParsePosition(at)) options.explain->positions.push_back(*position);
    }
  }
  return options;
}

std::optional<Region> ParseRegion(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  Region region;
  if (parts.size() != 4 || !absl::SimpleAtoi(parts[0], &region.x) || !absl::SimpleAtoi(parts[1], &region.y) ||
      !absl::SimpleAtoi(parts[2], &region.width) || !absl::SimpleAtoi(parts[3], &region.height))
    return std::nullopt;
  return region;
}

std::optional<Position> ParsePosition(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  Position position;
  if (parts.size() != 2 || !absl::SimpleAtof(parts[0], &position.x) ||
      !absl::SimpleAtof(parts[1], &position.y))
    return std::nullopt;
  // The comparison is false for NaN.
  const auto within = [](float value) { return value >= 0 && value <= 1; };
  return within(position.x) && within(position.y) ? std::optional(position) : std::nullopt;
}

std::optional<OutputSize> ParseOutputSize(const std::string& text) {
  OutputSize size;
  if (text == "network") {
    size.network = true;
    return size;
  }
  const std::vector<std::string> parts = absl::StrSplit(text, 'x');
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &size.width) ||
      !absl::SimpleAtoi(parts[1], &size.height) || size.width < 1 || size.height < 1)
    return std::nullopt;
  return size;
}

}  // namespace saccade::client
