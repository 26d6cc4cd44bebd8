#include "server/drift/drift_json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

using Json = nlohmann::ordered_json;

// More than any daemon counts, and exact in a double.
constexpr double kMaxCount = 1e15;

Json AsJson(const Distribution& distribution) {
  Json features = Json::object();
  for (size_t feature = 0; feature < kFeatures; ++feature)
    features[std::string(NameOf(static_cast<Feature>(feature)))] = distribution.bins[feature];
  Json classes = Json::object();
  for (const auto& [label, share] : distribution.classes) classes[absl::StrCat(label)] = share;
  return {{"items", distribution.items}, {"features", std::move(features)}, {"classes", std::move(classes)}};
}

absl::Status Wrong(absl::string_view where, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat(where, ": expected ", expected));
}

bool IsCount(const Json& value) {
  return value.is_number() && value.get<double>() >= 0 && value.get<double>() <= kMaxCount;
}

absl::Status ReadFeatures(const Json& features, Distribution& distribution) {
  for (size_t index = 0; index < kFeatures; ++index) {
    const std::string name(NameOf(static_cast<Feature>(index)));
    const auto found = features.find(name);
    if (found == features.end() || !found->is_array() || found->size() != kDriftBins)
      return Wrong(absl::StrCat("features.", name), absl::StrCat("a list of ", kDriftBins, " numbers"));
    for (size_t bin = 0; bin < kDriftBins; ++bin) {
      if (!IsCount((*found)[bin]))
        return Wrong(absl::StrCat("features.", name, "[", bin, "]"), "a number, at least 0");
      distribution.bins[index][bin] = (*found)[bin].get<double>();
    }
  }
  return absl::OkStatus();
}

absl::Status ReadClasses(const Json& classes, Distribution& distribution) {
  if (classes.size() > kMaxDriftClasses + 1)
    return Wrong("classes", absl::StrCat("at most ", kMaxDriftClasses, " classes"));
  for (const auto& [name, share] : classes.items()) {
    int64_t label = 0;
    if (!absl::SimpleAtoi(name, &label) || label < kOtherClasses)
      return Wrong("classes", absl::StrCat("numbers of classes as names, found '", name.substr(0, 40), "'"));
    if (!IsCount(share)) return Wrong(absl::StrCat("classes.", label), "a number, at least 0");
    distribution.classes[label] = share.get<double>();
  }
  return absl::OkStatus();
}

}  // namespace

std::string ToJson(const DriftReport& report, absl::string_view model, int64_t version) {
  Json drift = Json::object();
  for (const auto& [feature, value] : report.drift) drift[feature] = value;
  const Json text = {{"model", std::string(model)},
                     {"version", version},
                     {"window", report.window},
                     {"seen", report.seen},
                     {"repeated", report.repeated},
                     {"reference_from_file", report.reference_from_file},
                     {"reference_complete", report.reference_complete},
                     {"drift", std::move(drift)},
                     {"reference", AsJson(report.reference)},
                     {"recent", AsJson(report.recent)}};
  return text.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<Distribution> ReadDistribution(absl::string_view json) {
  const Json text = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!text.is_object())
    return Wrong("the file", "a JSON object, as in 'reference' of GET /v1/models/MODEL/drift");
  Distribution distribution;
  const auto items = text.find("items");
  if (items == text.end() || !items->is_number_integer() || !IsCount(*items) || items->get<double>() < 1)
    return Wrong("items", "a whole number, at least 1");
  distribution.items = items->get<int64_t>();
  const auto features = text.find("features");
  if (features == text.end() || !features->is_object()) return Wrong("features", "an object");
  const auto classes = text.find("classes");
  if (classes == text.end() || !classes->is_object()) return Wrong("classes", "an object");
  if (absl::Status read = ReadFeatures(*features, distribution); !read.ok()) return read;
  if (absl::Status read = ReadClasses(*classes, distribution); !read.ok()) return read;
  return distribution;
}

}  // namespace saccade::server
