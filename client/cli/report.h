// What a command tells of its outcomes, one by one as they come, and in the end.
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
  // Both must outlive it.
  Report(const InputsCommand& command, Console& console) : command_(command), console_(console) {}

  // In the order of the command line. False once nobody reads the output: the command ends with kExitFailure.
  bool Add(Outcome outcome);

  // After the last. The exit code: of the first that failed.
  int Finish();

 private:
  void Tell(const Outcome& outcome);

  const InputsCommand& command_;
  Console& console_;
  // Where they make one document.
  std::vector<Outcome> outcomes_;
  int exit_code_ = 0;
  std::string last_advice_;
};

// The folder of --output, if there is to be one. False after complaining.
bool MakeOutputFolder(const InputsCommand& command, Console& console);

// Of the command line.
RequestOptions RequestOf(const InputsCommand& command);
RequestOptions RequestOf(const PicturesCommand& command);

// Of "X,Y,WIDTH,HEIGHT"; none if it is no such text.
std::optional<Region> ParseRegion(const std::string& text);

// Of "X,Y", each from 0 to 1; none if it is no such text.
std::optional<Position> ParsePosition(const std::string& text);

// Of "WIDTHxHEIGHT" or "network"; none if it is no such text.
std::optional<OutputSize> ParseOutputSize(const std::string& text);

}  // namespace saccade::client
