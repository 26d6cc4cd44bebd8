#include "server/repository/version_policy.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace saccade::server {
namespace {

constexpr int kMaxVersions = 1024;
constexpr size_t kMaxLabels = 64;
constexpr size_t kMaxLabelBytes = 64;

bool IsLabel(absl::string_view text) {
  const auto fits = [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.';
  };
  return !text.empty() && text.size() <= kMaxLabelBytes && std::all_of(text.begin(), text.end(), fits) &&
         absl::ascii_isalpha(static_cast<unsigned char>(text.front()));
}

}  // namespace

absl::Status ReadVersionPolicy(const inference::ModelVersionPolicy& message, const ConfigCheck& check,
                               VersionPolicy* policy) {
  if (message.has_all()) policy->kind = VersionPolicy::Kind::kAll;
  if (message.has_latest()) policy->latest = std::max<int64_t>(1, message.latest().num_versions());
  if (!message.has_specific()) return absl::OkStatus();
  constexpr char kVersions[] = "version_policy.specific.versions";
  policy->kind = VersionPolicy::Kind::kSpecific;
  const auto& versions = message.specific().versions();
  if (versions.empty() || versions.size() > kMaxVersions) {
    return check.Error(kVersions, "names ", versions.size(), " versions, expected 1 to ", kMaxVersions);
  }
  for (const int64_t version : versions) {
    if (version < 1) return check.Error(kVersions, "holds ", version, ", expected 1 or more");
    policy->versions.push_back(version);
  }
  std::sort(policy->versions.begin(), policy->versions.end());
  return absl::OkStatus();
}

absl::Status ReadVersionLabels(absl::string_view value, absl::string_view field, const ConfigCheck& check,
                               std::map<std::string, int64_t>* labels) {
  for (const absl::string_view entry : absl::StrSplit(value, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(entry, absl::MaxSplits('=', 1));
    const absl::string_view label = absl::StripAsciiWhitespace(parts.first);
    int64_t version = 0;
    const bool is_version = absl::SimpleAtoi(parts.second, &version) && version >= 1;
    if (!IsLabel(label) || !is_version || !labels->try_emplace(std::string(label), version).second ||
        labels->size() > kMaxLabels) {
      return check.Error(
          field, "holds ", Quoted(entry), ", expected at most ", kMaxLabels,
          " comma-separated entries NAME=VERSION, as in stable=3,canary=4; a name is ",
          "unique, begins with a letter, continues with letters, digits, '_', '-' and '.', and has at most ",
          kMaxLabelBytes, " characters");
    }
  }
  return absl::OkStatus();
}

std::vector<int64_t> Chosen(const VersionPolicy& policy, const std::vector<int64_t>& present) {
  switch (policy.kind) {
    case VersionPolicy::Kind::kAll:
      return present;
    case VersionPolicy::Kind::kLatest: {
      const auto count = std::min<int64_t>(policy.latest, static_cast<int64_t>(present.size()));
      return {present.end() - count, present.end()};
    }
    case VersionPolicy::Kind::kSpecific:
      break;
  }
  std::vector<int64_t> chosen;
  std::set_intersection(present.begin(), present.end(), policy.versions.begin(), policy.versions.end(),
                        std::back_inserter(chosen));
  return chosen;
}

}  // namespace saccade::server
