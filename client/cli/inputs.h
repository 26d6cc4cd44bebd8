// The files that a command line names: one by one, as a folder, or by a pattern.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace saccade::client {

// Files are told apart by their endings alone; what they are the daemon finds out.
struct FileKind {
  // "JPEG, PNG, WebP or BMP".
  std::string what;
  // With the dot, lower case.
  std::vector<std::string> endings;
};

extern const FileKind kPictureFiles;
extern const FileKind kVideoFiles;
extern const FileKind kVolumeFiles;

// Those of this kind in a folder, in the order of their names, numbers in them by value. An error, in words
// to follow the folder's name, if there is none or it cannot be read.
absl::StatusOr<std::vector<std::string>> FilesIn(const std::string& folder, const FileKind& kind);

// In the order given: files, "-" and what is not there as they are; in a folder's place its files of this
// kind; in the place of a pattern ("*.jpg", which a shell left as it was) what matches. The error names what
// holds nothing.
absl::StatusOr<std::vector<std::string>> ExpandInputs(const std::vector<std::string>& inputs,
                                                      const FileKind& kind);

// Whether `one` comes before `other`: "f2.png" does before "f10.png".
bool ComesBefore(absl::string_view one, absl::string_view other);

}  // namespace saccade::client
