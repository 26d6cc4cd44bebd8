// The current certificate, reloaded when its files change.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/security/certificate.h"
#include "server/security/secret_files.h"

namespace saccade::server {

class Certificates {
 public:
  // Errors as ReadCertificate.
  static absl::StatusOr<std::unique_ptr<Certificates>> Open(const CertificateFiles& files);

  // Reloads the files if they have changed. If they do not fit together, logs that once and keeps the current
  // certificate. Call it periodically, from one thread.
  void ReloadIfChanged();

  // The certificate for new connections; never null. Thread-safe.
  std::shared_ptr<const Certificate> current() const;

 private:
  Certificates(CertificateFiles files, SecretFiles watched)
      : files_(std::move(files)), watched_(std::move(watched)) {}

  absl::Status Read();

  const CertificateFiles files_;
  SecretFiles watched_;
  mutable absl::Mutex mutex_;
  std::shared_ptr<const Certificate> current_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
