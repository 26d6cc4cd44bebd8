// Checks certificates and keys in PEM before they are passed to gRPC, which only logs those that it cannot
// use.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace saccade::client {

// INVALID_ARGUMENT unless `pem` contains a certificate. `what` names the input in the error message.
absl::Status CheckCertificates(absl::string_view pem, absl::string_view what);

// INVALID_ARGUMENT unless both are given, the key belongs to the certificate, and the certificate has not
// expired.
absl::Status CheckIdentity(absl::string_view certificate, absl::string_view key);

}  // namespace saccade::client
