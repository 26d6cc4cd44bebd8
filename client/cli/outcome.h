// What became of one picture, and how it is shown.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/console.h"
#include "client/types.h"

namespace saccade::client {

struct Outcome {
  std::string file;
  absl::StatusOr<Classification> answer = absl::UnknownError("not asked");
  // The file could not be read: answer's status is not the daemon's.
  bool unreadable = false;
  // Where the overlay was written, if one was asked for; why not, if it was not.
  std::string overlay;
  absl::Status overlay_status;

  // 0, or what the program returns for this picture.
  int ExitCode() const;
};

// A heading and one line a class: percentage, bar, index, label. Only for an answer that is there.
void PrintText(Console& console, const Outcome& outcome);

// One versioned document for all of them, ending in a newline.
std::string ToJson(const std::string& model, const std::vector<Outcome>& outcomes);

// A bar of `width` columns at most; in eighths of a column where the console takes more than ASCII.
std::string Bar(double fraction, int width, bool unicode);

}  // namespace saccade::client
