#include "server/repository/checksums.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/core/sha256.h"
#include "server/repository/files.h"

namespace saccade::server {
namespace {

constexpr char kSums[] = "SHA256SUMS";
constexpr char kSignature[] = "SHA256SUMS.sig";
constexpr size_t kMaxSumsBytes = size_t{4} << 20;
constexpr size_t kMaxFiles = 100'000;
constexpr int kMaxDepth = 8;
constexpr size_t kHexDigits = 64;

absl::Status Refused(const std::string& file, absl::string_view problem) {
  return absl::FailedPreconditionError(absl::StrCat(file, ": ", problem));
}

// Relative path -> where it is.
using Files = std::map<std::string, RepositoryPath>;

absl::Status ListAll(const RepositoryPath& folder, const std::string& prefix, int depth, Files& files) {
  const auto entries = folder.List();
  if (!entries.ok()) return entries.status();
  for (const DirectoryEntry& entry : *entries) {
    const std::string relative = prefix + entry.name;
    if (depth == 0 && (entry.name == kSums || entry.name == kSignature)) continue;
    if (files.size() >= kMaxFiles || depth >= kMaxDepth) {
      return Refused(folder.shown(),
                     absl::StrCat("the model has more than ", kMaxFiles, " files or ", kMaxDepth,
                                  " levels of folders, which is too much for ", kSums));
    }
    if (!entry.is_directory) {
      files.emplace(relative, folder / entry.name);
      continue;
    }
    absl::Status listed = ListAll(folder / entry.name, relative + "/", depth + 1, files);
    if (!listed.ok()) return listed;
  }
  return absl::OkStatus();
}

bool IsSum(absl::string_view text) {
  return text.size() == kHexDigits && std::all_of(text.begin(), text.end(), absl::ascii_isxdigit);
}

// Relative path -> checksum, from the lines that sha256sum writes.
absl::StatusOr<std::map<std::string, std::string>> ParseSums(const std::string& text,
                                                             const std::string& shown) {
  std::map<std::string, std::string> sums;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    absl::ConsumeSuffix(&line, "\r");
    if (line.empty()) continue;
    const absl::string_view sum = line.substr(0, kHexDigits);
    absl::string_view name = line.substr(sum.size());
    const bool fits = IsSum(sum) && (absl::ConsumePrefix(&name, "  ") || absl::ConsumePrefix(&name, " *"));
    absl::ConsumePrefix(&name, "./");
    if (!fits || name.empty()) {
      return Refused(shown, absl::StrCat("line ", number,
                                         " is not 64 hexadecimal digits, two spaces and a file's path, as "
                                         "sha256sum writes it"));
    }
    if (!sums.emplace(std::string(name), absl::AsciiStrToLower(sum)).second)
      return Refused(shown, absl::StrCat("names '", absl::CHexEscape(name), "' twice; keep one line"));
  }
  return sums;
}

// `shown` names the file in errors.
absl::StatusOr<std::string> SumOfFile(const std::string& path, const std::string& shown) {
  std::error_code error;
  // Reading a FIFO or a device could block or never end.
  if (!std::filesystem::is_regular_file(path, error)) return Refused(shown, "expected a regular file");
  std::ifstream file(path, std::ios::binary);
  Sha256Digest digest;
  std::vector<char> piece(size_t{1} << 20);
  while (file) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    digest.Add({piece.data(), static_cast<size_t>(file.gcount())});
  }
  if (!file.eof()) return Refused(shown, "cannot be read");
  std::string sum = digest.Hex();
  if (sum.empty()) return absl::ResourceExhaustedError("out of memory while checking checksums");
  return sum;
}

absl::StatusOr<std::string> SumOf(const RepositoryPath& path) {
  const auto resolved = path.Resolve();
  if (!resolved.ok()) return resolved.status();
  return SumOfFile(*resolved, path.shown());
}

// Checks that `loaded` are among the files.
absl::Status CheckLoaded(const Files& files, const std::string& model,
                         const std::vector<std::string>& loaded) {
  std::set<std::string> paths;
  for (const auto& [name, file] : files) {
    const auto path = file.ResolveFolder();
    if (!path.ok()) return path.status();
    paths.insert(path->string());
  }
  for (const std::string& path : loaded) {
    if (path.empty() || paths.count(path) > 0) continue;
    return Refused(model, absl::StrCat("'", absl::CHexEscape(path),
                                       "' is not one of its files any more; a folder was moved or linked "
                                       "anew while the model was loaded, load it again"));
  }
  return absl::OkStatus();
}

absl::Status CheckSignature(const RepositoryPath& folder, const std::string& sums,
                            const ChecksumRules& rules) {
  const RepositoryPath path = folder / kSignature;
  if (rules.key == nullptr) return absl::OkStatus();
  if (!path.Exists()) {
    if (!rules.required) return absl::OkStatus();
    return Refused(path.shown(),
                   "is missing, and the daemon runs with --require-signed; sign SHA256SUMS with "
                   "openssl pkeyutl -sign -rawin");
  }
  const auto resolved = path.Resolve();
  if (!resolved.ok()) return resolved.status();
  std::error_code error;
  std::string signature;
  if (std::filesystem::is_regular_file(*resolved, error)) {
    signature.resize(SigningKey::kSignatureBytes + 1);
    std::ifstream file(*resolved, std::ios::binary);
    file.read(signature.data(), static_cast<std::streamsize>(signature.size()));
    signature.resize(static_cast<size_t>(file.gcount()));
  }
  if (rules.key->Verifies(sums, signature)) return absl::OkStatus();
  return Refused(path.shown(),
                 "is not the signature of SHA256SUMS by the key of --signing-key; expected 64 bytes "
                 "of Ed25519, made after the last change of SHA256SUMS");
}

}  // namespace

absl::StatusOr<std::string> FileSum(const std::string& path) { return SumOfFile(path, path); }

absl::Status CheckChecksums(const std::string& repository, absl::string_view model,
                            const ChecksumRules& rules, const std::vector<std::string>& loaded) {
  const auto root = RepositoryPath::Root(repository);
  if (!root.ok()) return root.status();
  const RepositoryPath folder = *root / model;
  const RepositoryPath path = folder / kSums;
  if (!path.Exists()) {
    if (!rules.required) return absl::OkStatus();
    return Refused(path.shown(),
                   "is missing, and the daemon runs with --require-signed; make it with sha256sum and "
                   "sign it");
  }
  const auto text = path.ReadText(kMaxSumsBytes);
  if (!text.ok()) return text.status();
  if (absl::Status signed_by = CheckSignature(folder, *text, rules); !signed_by.ok()) return signed_by;
  const auto sums = ParseSums(*text, path.shown());
  if (!sums.ok()) return sums.status();
  Files files;
  if (absl::Status listed = ListAll(folder, "", 0, files); !listed.ok()) return listed;
  for (const auto& [name, sum] : *sums) {
    if (files.count(name) > 0) continue;
    return Refused(path.shown(),
                   absl::StrCat("names '", absl::CHexEscape(name),
                                "', which the model does not have; copy the file again, or make "
                                "SHA256SUMS anew"));
  }
  for (const auto& [name, file] : files) {
    const auto expected = sums->find(name);
    if (expected == sums->end()) {
      return Refused(file.shown(),
                     "is not in SHA256SUMS, which has to name every file of the model; remove the "
                     "file, or make SHA256SUMS anew");
    }
    const auto sum = SumOf(file);
    if (!sum.ok()) return sum.status();
    if (*sum == expected->second) continue;
    return Refused(file.shown(),
                   absl::StrCat("has the SHA-256 ", *sum, ", but SHA256SUMS says ", expected->second,
                                "; the file is damaged or was changed, copy it again"));
  }
  return CheckLoaded(files, folder.shown(), loaded);
}

}  // namespace saccade::server
