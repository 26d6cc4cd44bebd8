// The currently valid tokens, and the check of a call's token.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/security/scopes.h"
#include "server/security/secret_files.h"
#include "server/security/token_file.h"

namespace saccade::server {

class Tokens {
 public:
  using Known = std::vector<KnownToken>;

  // INVALID_ARGUMENT if the file cannot be read or is not a list of tokens.
  static absl::StatusOr<std::unique_ptr<Tokens>> Open(const std::string& path);

  // Reloads the file if it has changed. If it is invalid, logs that once and keeps the current tokens. Call
  // it periodically, from one thread.
  void ReloadIfChanged();

  // The valid tokens. Thread-safe.
  std::shared_ptr<const Known> known() const;

  // Names the token of a call that has the given authorization headers, without revealing it: "token:" and
  // the first 16 hexadecimal digits of its SHA-256. Empty unless there is exactly one header, with a known
  // token. Thread-safe. The time does not depend on which token matches.
  std::string IdentityOf(absl::Span<const absl::string_view> authorizations) const;

  // Whether the client may compute `model`. `client` is what IdentityOf() named; PERMISSION_DENIED if its
  // token is limited to other models, or is not known any more. Thread-safe.
  absl::Status CheckModel(absl::string_view client, absl::string_view model) const;

  // Checks a call that has the given authorization headers and requires the scope `needed`; nullopt rejects
  // every call. UNAUTHENTICATED unless there is exactly one header, with a known token; PERMISSION_DENIED if
  // the token lacks the scope. Thread-safe. The time does not depend on which token matches.
  absl::Status Check(absl::Span<const absl::string_view> authorizations, std::optional<Scope> needed) const;

 private:
  Tokens(std::string path, SecretFiles file) : path_(std::move(path)), file_(std::move(file)) {}

  absl::Status Read();

  const std::string path_;
  SecretFiles file_;
  mutable absl::Mutex mutex_;
  std::shared_ptr<const Known> known_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
