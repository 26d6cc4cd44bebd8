// The tokens that are known right now, and whether a call's is one of them.
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
  // INVALID_ARGUMENT for a file that cannot be read or is no list of tokens.
  static absl::StatusOr<std::unique_ptr<Tokens>> Open(const std::string& path);

  // Takes the file anew if it has changed. One that is wrong is told once, and what was known before stays.
  // To be called by one thread, now and then.
  void Look();

  // `authorizations` are the call's headers of that name, `needed` what it needs; nothing refuses everybody.
  // UNAUTHENTICATED without one known token, PERMISSION_DENIED if it has not this scope. Thread-safe; takes
  // as long whichever token it is.
  absl::Status Check(absl::Span<const absl::string_view> authorizations, std::optional<Scope> needed) const;

 private:
  using Known = std::vector<KnownToken>;

  Tokens(std::string path, SecretFiles file) : path_(std::move(path)), file_(std::move(file)) {}

  absl::Status Read();
  std::shared_ptr<const Known> known() const;

  const std::string path_;
  SecretFiles file_;
  mutable absl::Mutex mutex_;
  std::shared_ptr<const Known> known_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
