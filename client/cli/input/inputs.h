// Expands the inputs of a command line: files, folders, and patterns.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace saccade::client {

// Files are selected by their extension alone; the daemon determines the actual format.
struct FileKind {
  // Description for error messages, for example "JPEG, PNG, WebP, TIFF or BMP".
  std::string what;
  // Extensions with the dot, in lower case.
  std::vector<std::string> endings;
};

extern const FileKind kPictureFiles;
extern const FileKind kVideoFiles;
extern const FileKind kVolumeFiles;

// Returns the files of this kind in a folder, sorted by name with numbers compared by value. Returns an error
// if there is none or the folder cannot be read; its message is to follow the folder's name.
absl::StatusOr<std::vector<std::string>> FilesIn(const std::string& folder, const FileKind& kind);

// Expands the inputs in the order given. Files, "-" and missing files stay as they are; a folder is replaced
// by its files of this kind, a pattern ("*.jpg") that the shell did not expand by the matching files. The
// error names the input that yields no file.
absl::StatusOr<std::vector<std::string>> ExpandInputs(const std::vector<std::string>& inputs,
                                                      const FileKind& kind);

// Returns whether `one` sorts before `other`: "f2.png" comes before "f10.png".
bool ComesBefore(absl::string_view one, absl::string_view other);

}  // namespace saccade::client
