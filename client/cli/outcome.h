// What became of one picture, or of one pair.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/types.h"

namespace saccade::client {

// What --output had written, and where; `what` is its name in the JSON document.
struct Written {
  std::string what;
  std::string path;
};

struct Outcome {
  // One, or the left and the right one.
  std::vector<std::string> files;
  absl::StatusOr<AnyAnswer> answer = absl::UnknownError("not asked");
  // The file that could not be read: answer's status is then not the daemon's.
  std::optional<std::string> unreadable;
  // As far as it came; write_status says why no further.
  std::vector<Written> written;
  absl::Status write_status;

  // 0, or what the program returns for this outcome.
  int ExitCode() const;
};

// "cat.jpg"; "standard input" for "-"; "left.png, right.png" for a pair.
std::string NameOf(const std::vector<std::string>& files);

}  // namespace saccade::client
