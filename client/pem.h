// Certificates and keys as files have them, looked at before gRPC takes them: what it cannot use it only
// logs.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace saccade::client {

// INVALID_ARGUMENT unless there is a certificate in it. `what` is what it was given as.
absl::Status CheckCertificates(absl::string_view pem, absl::string_view what);

// INVALID_ARGUMENT unless both are there, the key is the certificate's, and the certificate is valid now.
absl::Status CheckIdentity(absl::string_view certificate, absl::string_view key);

}  // namespace saccade::client
