// The signer of answers, with the name of the program that computes them.
#pragma once

#include <istream>
#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "server/attestation/attester.h"
#include "server/core/clock.h"

namespace saccade::server {

// The files of the daemon's own code, which decides how pictures are decoded and results are rounded:
// `program`; saccade-decode-worker, if it lies beside it; the libraries in `maps`, the lines of
// /proc/self/maps, that are built with it; and libsaccade_openvino.so, if it lies beside them.
std::set<std::string> CodeFiles(const std::string& program, std::istream& maps);

// SHA-256 of the files, one after another, in hexadecimal digits. An error names the file that cannot be
// read.
absl::StatusOr<std::string> CodeDigest(const std::set<std::string>& files);

// Names this program: `version`, a digest of its own code, and LibTorch's version. Reads the program's files.
absl::StatusOr<std::string> AttestedBuild(const std::string& version);

// Null without a key. Logs the key's fingerprint. Errors of CodeDigest(). `clock` must outlive the result.
absl::StatusOr<std::unique_ptr<Attester>> MakeAttester(std::shared_ptr<const AttestationKey> key,
                                                       const std::string& version, Clock* clock);

}  // namespace saccade::server
