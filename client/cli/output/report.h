// Prints the outcomes of a command, one by one and at the end.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "client/cli/output/console.h"
#include "client/cli/output/format.h"
#include "client/cli/output/outcome.h"

namespace saccade::client {

struct ReportOptions {
  Format format = Format::kText;
  // Name of the model; part of JSON documents.
  std::string model;
  // Address of the daemon, for error messages.
  std::string url;
  // Does not print the names of the files written.
  bool quiet = false;
};

class Report {
 public:
  // `console` must outlive the report.
  Report(ReportOptions options, Console& console) : options_(std::move(options)), console_(console) {}

  // Adds the next outcome, in the order of the command line. Returns false if the output cannot be written
  // any more: the command then ends with kExitFailure.
  bool Add(Outcome outcome);

  // Call after the last outcome. Returns the exit code of the first outcome that failed.
  int Finish();

 private:
  // Prints the messages of one outcome on err. The same advice is not printed twice in a row.
  void PrintMessages(const Outcome& outcome);

  const ReportOptions options_;
  Console& console_;
  // Kept for formats that print one document at the end.
  std::vector<Outcome> outcomes_;
  int exit_code_ = 0;
  std::string last_advice_;
};

}  // namespace saccade::client
