#include "server/repository/daemon_parameters.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/repository/promote_config.h"
#include "server/repository/version_policy.h"

namespace saccade::server {
namespace {

// Beyond these limits a model's share would be negligible, and would get lost in rounding.
constexpr double kMinWeight = 0.001;
constexpr double kMaxWeight = 1000;
constexpr int64_t kMaxThreads = 1024;
// With fewer items, random differences are as large as a real change.
constexpr int64_t kMinDriftWindow = 100;
constexpr int64_t kMaxDriftWindow = 1'000'000;

absl::Status Wrong(const std::string& key, const std::string& value, absl::string_view expected,
                   const ConfigCheck& check) {
  return check.Error(MapEntryPath("parameters", key), "is ", Quoted(value), ", expected ", expected);
}

absl::StatusOr<int64_t> Number(const std::string& key, const std::string& value, int64_t max,
                               const ConfigCheck& check, int64_t min = 1) {
  int64_t number = 0;
  if (absl::SimpleAtoi(value, &number) && number >= min && number <= max) return number;
  return Wrong(key, value, absl::StrCat("a whole number from ", min, " to ", max), check);
}

// Parses "version=4,share=0.1", or the same with ",tolerance=0.05". Each entry appears at most once.
absl::StatusOr<ShadowRule> ReadShadow(const std::string& key, const std::string& value,
                                      const ConfigCheck& check) {
  ShadowRule rule;
  bool sound = true;
  for (const absl::string_view entry : absl::StrSplit(value, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(absl::StripAsciiWhitespace(entry), absl::MaxSplits('=', 1));
    double number = 0;
    if (parts.first == "version") {
      sound =
          sound && rule.version == 0 && absl::SimpleAtoi(parts.second, &rule.version) && rule.version >= 1;
    } else if (parts.first == "share") {
      // The comparisons are false for NaN.
      sound = sound && rule.share == 0 && absl::SimpleAtod(parts.second, &rule.share) && rule.share > 0 &&
              rule.share <= 1;
    } else if (parts.first == "tolerance") {
      sound = sound && !rule.tolerance && absl::SimpleAtod(parts.second, &number) && std::isfinite(number) &&
              number >= 0;
      rule.tolerance = number;
    } else {
      sound = false;
    }
  }
  if (sound && rule.version > 0 && rule.share > 0) return rule;
  return Wrong(
      key, value,
      "version=NUMBER,share=SHARE, as in version=4,share=0.1, with a share above 0 and at most 1, and "
      "possibly ,tolerance=DIFFERENCE, at least 0",
      check);
}

}  // namespace

absl::StatusOr<bool> ReadDaemonParameter(const std::string& key, const std::string& value,
                                         const ConfigCheck& check, ModelSettings* settings) {
  if (key == "weight") {
    double weight = 0;
    // The negation also rejects NaN.
    if (!absl::SimpleAtod(value, &weight) || !(weight >= kMinWeight && weight <= kMaxWeight)) {
      return Wrong(key, value, absl::StrCat("a number from ", kMinWeight, " to ", kMaxWeight), check);
    }
    settings->batching.weight = weight;
    return true;
  }
  if (key == "pin") {
    if (value != "true" && value != "false") return Wrong(key, value, "'true' or 'false'", check);
    settings->pin = value == "true";
    return true;
  }
  if (key == "strict_output_shapes") {
    if (value != "true" && value != "false") return Wrong(key, value, "'true' or 'false'", check);
    settings->strict_output_shapes = value == "true";
    return true;
  }
  if (key == "attest") {
    if (value != "true" && value != "false") return Wrong(key, value, "'true' or 'false'", check);
    settings->attest = value == "true";
    return true;
  }
  if (key == "threads") {
    const auto threads = Number(key, value, kMaxThreads, check);
    if (!threads.ok()) return threads.status();
    settings->batching.threads = static_cast<int>(*threads);
    return true;
  }
  if (key == "optimize") {
    for (const Optimize goal : {Optimize::kLatency, Optimize::kThroughput})
      if (value == NameOf(goal)) settings->optimize = goal;
    if (!settings->optimize) return Wrong(key, value, "'latency' or 'throughput'", check);
    return true;
  }
  if (key == "max_precision_loss") {
    double loss = 0;
    if (!absl::SimpleAtod(value, &loss) || !(loss >= 0 && loss <= 1))
      return Wrong(key, value, "a number from 0 to 1, e.g. 0.005 for 0.5 %", check);
    settings->max_precision_loss = loss;
    return true;
  }
  if (key == "drift_window") {
    const auto window = Number(key, value, kMaxDriftWindow, check, kMinDriftWindow);
    if (!window.ok()) return window.status();
    settings->drift_window = *window;
    return true;
  }
  if (key == "shadow") {
    const auto rule = ReadShadow(key, value, check);
    if (!rule.ok()) return rule.status();
    settings->shadow = *rule;
    return true;
  }
  if (key == "promote") {
    auto rule = ReadPromoteRule(value);
    if (!rule.ok()) {
      return check.Error(MapEntryPath("parameters", key), "is ", Quoted(value), ": ",
                         rule.status().message());
    }
    settings->promote = *std::move(rule);
    return true;
  }
  if (key == "tiles") {
    const std::pair<std::string, std::string> sides = absl::StrSplit(value, absl::MaxSplits(':', 1));
    models::TileRules& tiles = settings->tiles;
    const bool read = absl::SimpleAtoi(sides.first, &tiles.size) &&
                      (sides.second.empty() || absl::SimpleAtoi(sides.second, &tiles.overlap));
    if (!read || !models::IsValid(tiles))
      return Wrong(key, value,
                   absl::StrCat("SIZE:OVERLAP in pixels, e.g. 640:64, with a size of 1 to ",
                                models::kMaxTileSize, " and an overlap of at most half of it"),
                   check);
    return true;
  }
  if (key == "items") {
    if (value != "padded" && value != "flat") return Wrong(key, value, "'padded' or 'flat'", check);
    settings->items = value == "flat" ? ItemsForm::kFlat : ItemsForm::kPadded;
    return true;
  }
  if (key == "version_labels") {
    absl::Status labels =
        ReadVersionLabels(value, MapEntryPath("parameters", key), check, &settings->version_labels);
    if (!labels.ok()) return labels;
    return true;
  }
  int64_t* bound = nullptr;
  if (key == "max_inflight_requests") bound = &settings->max_inflight.requests;
  if (key == "max_inflight_bytes") bound = &settings->max_inflight.bytes;
  if (key == "max_decoded_bytes") bound = &settings->max_inflight.decoded_bytes;
  if (key == "max_cache_bytes") bound = &settings->max_cached_bytes;
  if (bound == nullptr) return false;
  const auto number = Number(key, value, std::numeric_limits<int64_t>::max() / 2, check);
  if (!number.ok()) return number.status();
  *bound = *number;
  return true;
}

}  // namespace saccade::server
