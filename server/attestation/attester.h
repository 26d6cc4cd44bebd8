// Writes and signs the statements of answers.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/attestation/attestation_key.h"
#include "server/core/attestation.h"
#include "server/core/clock.h"
#include "server/core/served_by.h"

namespace saccade::server {

// A longer request text is replaced by its digest.
inline constexpr size_t kMaxRequestText = 8192;
// Bounds what an attestation adds to an answer, together with the digests of the inputs.
inline constexpr size_t kMaxAttestation = 16384;
// An input's digest with its quotes and comma, so that larger numbers of inputs are replaced as well.
inline constexpr size_t kMaxInputDigests = 64;

// What a protocol knows of a call.
struct AttestedCall {
  // "saccade.v1" or "inference": whose forms the request and the answer's digest have.
  absl::string_view protocol;
  absl::string_view model;
  // The request without the bytes of its inputs, as JSON on one line.
  std::string request = {};
  // SHA-256 of the bytes of each input, in the order of the request, and of the answer's canonical form; in
  // hexadecimal digits.
  std::vector<std::string> inputs_sha256 = {};
  std::string answer_sha256 = {};
};

// The text as a JSON string in ASCII. Bytes that are not UTF-8 are replaced.
std::string JsonText(absl::string_view text);

// Thread-safe.
class Attester {
 public:
  // `build` names the program. `clock` must outlive this object.
  Attester(std::shared_ptr<const AttestationKey> key, std::string build, Clock* clock)
      : key_(std::move(key)), build_(std::move(build)), clock_(clock) {}

  // INTERNAL if memory is short. REQUIRES: `served` has an identity.
  absl::StatusOr<Attestation> Attest(const AttestedCall& call, const ServedBy& served) const;

 private:
  const std::shared_ptr<const AttestationKey> key_;
  const std::string build_;
  Clock* const clock_;
};

}  // namespace saccade::server
