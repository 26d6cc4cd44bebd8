#include "server/lifecycle/attest_flag.h"

#include <CLI/CLI.hpp>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/attestation/attestation_key.h"
#include "server/security/secret_files.h"

namespace saccade::server {
namespace {

constexpr char kFlag[] = "--attest-key";

absl::StatusOr<std::shared_ptr<const AttestationKey>> ReadKey(const std::string& path) {
  auto text = ReadSecretFile(kFlag, path);
  if (!text.ok()) return text.status();
  auto key = AttestationKey::Open(absl::StrCat(kFlag, " ", path), *text);
  Wipe(*text);
  return key;
}

}  // namespace

void AddAttestFlag(CLI::App& app, Flags* flags) {
  const auto read = [flags](const std::string& path) {
    auto key = ReadKey(path);
    if (!key.ok()) throw CLI::ValidationError(std::string(key.status().message()));
    flags->attest_key = *std::move(key);
    flags->permissions.attestation_key_sha256 = flags->attest_key->fingerprint();
  };
  app.add_option_function<std::string>(
         kFlag, read,
         "Ed25519 private key (PEM) that the answers of models with the parameter attest are signed with")
      ->type_name("FILE");
}

}  // namespace saccade::server
