#include "server/lifecycle/attester_setup.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "models/device/libtorch_version.h"
#include "server/core/sha256.h"
#include "server/logging/log.h"

namespace saccade::server {
namespace {

// This program and those of its libraries that are built with it, which decide how results are rounded.
std::set<std::string> OwnFiles() {
  std::set<std::string> files;
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) files.insert(program.string());
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t path = line.find('/');
    if (path == std::string::npos) continue;
    if (absl::StartsWith(std::filesystem::path(line.substr(path)).filename().string(), "libsaccade"))
      files.insert(line.substr(path));
  }
  return files;
}

}  // namespace

std::string AttestedBuild(const std::string& version) {
  Sha256Digest digest;
  std::string piece(size_t{1} << 20, '\0');
  for (const std::string& path : OwnFiles()) {
    std::ifstream file(path, std::ios::binary);
    while (file) {
      file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
      digest.Add({piece.data(), static_cast<size_t>(file.gcount())});
    }
  }
  return absl::StrCat("saccaded ", version, ", code ", digest.Hex(), ", LibTorch ",
                      models::LibTorchVersion());
}

std::unique_ptr<Attester> MakeAttester(std::shared_ptr<const AttestationKey> key, const std::string& version,
                                       Clock* clock) {
  if (key == nullptr) return nullptr;
  std::string build = AttestedBuild(version);
  Log(LogLevel::kInfo, "answers are signed for models with attest",
      {{"key_sha256", key->fingerprint()}, {"build", build}});
  return std::make_unique<Attester>(std::move(key), std::move(build), clock);
}

}  // namespace saccade::server
