// Names and contents of the files that --output writes.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/cli/output/console.h"
#include "client/cli/output/outcome.h"

namespace saccade::client {

// Returns the beginnings of the names of each item's files: DIR/STEM, or DIR/STEM-2 and so on for items with
// the same stem; the stem of "-" is "stdin". The suffix that callers append ("cat.overlay.png") keeps a file
// from replacing its input.
std::vector<std::string> OutputStems(const std::string& directory, const std::vector<std::string>& pictures);

// Creates the folder and those that contain it; does nothing if `folder` is empty. Returns false after
// printing an error.
bool MakeOutputFolder(const std::string& folder, Console& console);

// Writes the parts one after the other, replacing the file at `path`. An error if the file could not be
// written completely.
absl::Status WriteFile(const std::string& path, std::initializer_list<absl::string_view> parts);

// Writes the file, and adds it to `written` as `what` if that succeeded.
absl::Status WriteAs(const std::string& what, const std::string& path, absl::string_view bytes,
                     std::vector<Written>& written);

}  // namespace saccade::client
