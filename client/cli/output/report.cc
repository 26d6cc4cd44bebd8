#include "client/cli/output/report.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/output/answer_text.h"
#include "client/cli/output/document.h"
#include "client/cli/output/failure.h"

namespace saccade::client {

bool Report::Add(Outcome outcome) {
  if (exit_code_ == kExitOk) exit_code_ = outcome.ExitCode();
  PrintMessages(outcome);
  if (options_.format == Format::kJsonLines) {
    console_.out << DocumentLine(options_.model, outcome);
    return Flush(console_);
  }
  if (options_.format != Format::kText) {
    outcomes_.push_back(std::move(outcome));
  } else if (outcome.answer.ok()) {
    PrintText(console_, outcome);
    return Flush(console_);
  }
  return true;
}

int Report::Finish() {
  if (options_.format == Format::kText || options_.format == Format::kJsonLines) return exit_code_;
  console_.out << Document(options_.format, options_.model, outcomes_);
  return Flush(console_) ? exit_code_ : kExitFailure;
}

void Report::PrintMessages(const Outcome& outcome) {
  const std::string name = NameOf(outcome.unreadable ? std::vector{*outcome.unreadable} : outcome.files);
  if (!outcome.answer.ok()) {
    const absl::Status& status = outcome.answer.status();
    const FailureText explanation =
        outcome.unreadable ? FailureText{std::string(status.message()), ""} : TextOf(status, options_.url);
    const bool advise = !explanation.advice.empty() && explanation.advice != last_advice_;
    last_advice_ = explanation.advice;
    Complain(console_, absl::StrCat(name, outcome.unreadable ? " " : ": ", explanation.what,
                                    advise ? ": " : "", advise ? explanation.advice : ""));
    return;
  }
  for (const Written& file : outcome.written) {
    if (!options_.quiet) console_.err << "wrote " << Printable(file.path) << std::endl;
  }
  if (!outcome.write_status.ok()) {
    Complain(console_, absl::StrCat(name, ": no output: ", outcome.write_status.message()));
  }
}

}  // namespace saccade::client
