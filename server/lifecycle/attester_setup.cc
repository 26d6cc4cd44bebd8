#include "server/lifecycle/attester_setup.h"

#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "models/device/libtorch_version.h"
#include "server/core/sha256.h"
#include "server/logging/log.h"

namespace saccade::server {
namespace fs = std::filesystem;

std::set<std::string> CodeFiles(const std::string& program, std::istream& maps) {
  std::set<std::string> files = {program};
  std::error_code error;
  const auto add_if_there = [&](const fs::path& path) {
    if (fs::exists(path, error)) files.insert(path.string());
  };
  add_if_there(fs::path(program).parent_path() / "saccade-decode-worker");
  for (std::string line; std::getline(maps, line);) {
    const size_t slash = line.find('/');
    if (slash == std::string::npos) continue;
    const fs::path path = line.substr(slash);
    if (!absl::StartsWith(path.filename().string(), "libsaccade")) continue;
    files.insert(path.string());
    // The daemon opens it later, with the first graph.
    add_if_there(path.parent_path() / "libsaccade_openvino.so");
  }
  return files;
}

absl::StatusOr<std::string> CodeDigest(const std::set<std::string>& files) {
  Sha256Digest digest;
  std::string piece(size_t{1} << 20, '\0');
  for (const std::string& path : files) {
    std::ifstream file(path, std::ios::binary);
    while (file) {
      file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
      digest.Add({piece.data(), static_cast<size_t>(file.gcount())});
    }
    // At the end of a file that was read.
    if (!file.eof()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "--attest-key: '", path,
          "', a part of saccaded that signed answers name by its digest, cannot be read; install "
          "saccaded again, readable by this user, or leave the flag out"));
    }
  }
  return digest.Hex();
}

absl::StatusOr<std::string> AttestedBuild(const std::string& version) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  std::ifstream maps("/proc/self/maps");
  const auto digest = CodeDigest(CodeFiles(program.string(), maps));
  if (!digest.ok()) return digest.status();
  return absl::StrCat("saccaded ", version, ", code ", *digest, ", LibTorch ", models::LibTorchVersion());
}

absl::StatusOr<std::unique_ptr<Attester>> MakeAttester(std::shared_ptr<const AttestationKey> key,
                                                       const std::string& version, Clock* clock) {
  if (key == nullptr) return nullptr;
  auto build = AttestedBuild(version);
  if (!build.ok()) return build.status();
  Log(LogLevel::kInfo, "answers are signed for models with attest",
      {{"key_sha256", key->fingerprint()}, {"build", *build}});
  return std::make_unique<Attester>(std::move(key), *std::move(build), clock);
}

}  // namespace saccade::server
