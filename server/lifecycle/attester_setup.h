// The signer of answers, with the name of the program that computes them.
#pragma once

#include <memory>
#include <string>

#include "server/attestation/attester.h"
#include "server/core/clock.h"

namespace saccade::server {

// Names this program: `version`, a digest of its own code, and LibTorch's version. Reads the program's files.
std::string AttestedBuild(const std::string& version);

// Null without a key. Logs the key's fingerprint. `clock` must outlive the result.
std::unique_ptr<Attester> MakeAttester(std::shared_ptr<const AttestationKey> key, const std::string& version,
                                       Clock* clock);

}  // namespace saccade::server
