// Prints the outcomes of a command, one by one and at the end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/cli/console.h"
#include "client/cli/options.h"
#include "client/cli/outcome.h"
#include "client/client.h"

namespace saccade::client {

class Report {
 public:
  // `command` and `console` must outlive the report.
  Report(const InputsCommand& command, Console& console) : command_(command), console_(console) {}

  // Adds the next outcome, in the order of the command line. Returns false if the output cannot be written
  // any more: the command then ends with kExitFailure.
  bool Add(Outcome outcome);

  // Call after the last outcome. Returns the exit code of the first outcome that failed.
  int Finish();

 private:
  void Tell(const Outcome& outcome);

  const InputsCommand& command_;
  Console& console_;
  // Kept for formats that print one document at the end.
  std::vector<Outcome> outcomes_;
  int exit_code_ = 0;
  std::string last_advice_;
};

// Creates the folder of --output, if one was given. Returns false after printing an error.
bool MakeOutputFolder(const InputsCommand& command, Console& console);

// Returns the request options of the command line.
RequestOptions RequestOf(const InputsCommand& command);
RequestOptions RequestOf(const PicturesCommand& command);

// Parses "X,Y,WIDTH,HEIGHT"; empty if `text` is malformed.
std::optional<Region> ParseRegion(const std::string& text);

// Parses "X,Y", each from 0 to 1; empty if `text` is malformed.
std::optional<Position> ParsePosition(const std::string& text);

// Parses "WIDTHxHEIGHT" or "network"; empty if `text` is malformed.
std::optional<OutputSize> ParseOutputSize(const std::string& text);

}  // namespace saccade::client
