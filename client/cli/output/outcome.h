// Outcome of one item: its result or error, and the files written.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cpp/types.h"

namespace saccade::client {

// A file written for --output; `what` is its key in the JSON document.
struct Written {
  std::string what;
  std::string path;
};

struct Outcome {
  // One file, or the left and the right one of a pair.
  std::vector<std::string> files;
  absl::StatusOr<AnyAnswer> answer = absl::UnknownError("not asked");
  // The file that could not be read, if any; answer's status is then not from the daemon.
  std::optional<std::string> unreadable;
  // Files written before write_status, if it is an error.
  std::vector<Written> written;
  absl::Status write_status;

  // Returns 0, or the program's exit code for this outcome.
  int ExitCode() const;
};

// Returns "cat.jpg"; "standard input" for "-"; "left.png, right.png" for a pair.
std::string NameOf(const std::vector<std::string>& files);

}  // namespace saccade::client
