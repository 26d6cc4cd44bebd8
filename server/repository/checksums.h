// Checks a model's files against the file SHA256SUMS in its folder, and that file against its signature.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/repository/signing_key.h"

namespace saccade::server {

// The SHA-256 of a regular file, in hexadecimal digits. Blocks on the file system. Thread-safe.
// FAILED_PRECONDITION names the file.
absl::StatusOr<std::string> FileSum(const std::string& path);
// FileSum(), or what returns the same without reading a file again that has not changed.
using FileSummer = std::function<absl::StatusOr<std::string>(const std::string& path)>;

struct ChecksumRules {
  // If set, the file SHA256SUMS.sig of a model, if there is one, must be the signature of SHA256SUMS by it.
  std::shared_ptr<const SigningKey> key = nullptr;
  // Whether models must have both files.
  bool required = false;
};

// Reads every file of the model's folder, if it has a SHA256SUMS: each must be listed there with its SHA-256,
// and each listed file must be there. Hidden files are left out, as everywhere in a repository. Blocks on the
// file system. Thread-safe. The error, FAILED_PRECONDITION, names the file, what it is and what was expected.
//
// `loaded` are paths as in ModelVersion, which the caller found earlier and is going to load; empty ones are
// left out. It is an error if one is no longer among the files that were read, because a folder was linked
// anew meanwhile.
absl::Status CheckChecksums(const std::string& repository, absl::string_view model,
                            const ChecksumRules& rules, const std::vector<std::string>& loaded = {});

}  // namespace saccade::server
