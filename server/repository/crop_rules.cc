#include "server/repository/crop_rules.h"

#include <algorithm>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/repository/repository.h"

namespace saccade::server {
namespace {

constexpr char kModels[] = "crops";
constexpr const char* kRules[] = {"crop_padding", "crop_min_score", "crop_max", "crop_classes"};
constexpr double kMaxPadding = 2;
constexpr int64_t kMaxClass = 1'000'000;

// A parameter and what is wrong with it.
struct Mistake {
  std::string parameter;
  std::string problem;
};

// The value of `name`; null if it is not set.
const std::string* Find(const ModelSettings& settings, const std::string& name) {
  const auto found = settings.options.find(name);
  return found == settings.options.end() ? nullptr : &found->second;
}

// False if the parameter is set, but is not a number from 0 to `max`.
bool ReadNumber(const std::string* value, double max, double* number) {
  // The negation also rejects NaN.
  return value == nullptr || (absl::SimpleAtod(*value, number) && *number >= 0 && *number <= max);
}

std::optional<Mistake> ReadModels(const std::string& value, CropRules* rules) {
  for (const absl::string_view name : absl::StrSplit(value, ',')) {
    if (absl::Status good = CheckModelName(std::string(name)); !good.ok())
      return Mistake{kModels, std::string(good.message())};
    if (std::find(rules->models.begin(), rules->models.end(), name) != rules->models.end())
      return Mistake{kModels, absl::StrCat("names ", Quoted(name), " twice, expected each model once")};
    rules->models.emplace_back(name);
  }
  if (rules->models.size() <= kMaxCropModels) return std::nullopt;
  return Mistake{kModels,
                 absl::StrCat("names ", rules->models.size(), " models, expected 1 to ", kMaxCropModels)};
}

std::optional<Mistake> ReadClasses(const std::string& value, CropRules* rules) {
  for (const absl::string_view text : absl::StrSplit(value, ',')) {
    int64_t index = 0;
    if (!absl::SimpleAtoi(text, &index) || index < 0 || index > kMaxClass) {
      return Mistake{"crop_classes", absl::StrCat("is ", Quoted(value),
                                                  ", expected indices of the detector's classes, e.g. 0,2")};
    }
    rules->classes.push_back(index);
  }
  return std::nullopt;
}

std::optional<Mistake> ReadRules(const ModelSettings& ensemble, CropRules* rules) {
  const auto wrong = [&](const char* name, const std::string& expected) {
    return Mistake{name, absl::StrCat("is ", Quoted(*Find(ensemble, name)), ", expected ", expected)};
  };
  if (!ReadNumber(Find(ensemble, "crop_padding"), kMaxPadding, &rules->padding)) {
    return wrong("crop_padding", absl::StrCat("a fraction of the box's sides from 0 to ", kMaxPadding));
  }
  if (!ReadNumber(Find(ensemble, "crop_min_score"), 1, &rules->min_score))
    return wrong("crop_min_score", "a score from 0 to 1");
  if (const std::string* const max = Find(ensemble, "crop_max"); max != nullptr) {
    if (!absl::SimpleAtoi(*max, &rules->max) || rules->max < 1 || rules->max > kMaxCrops)
      return wrong("crop_max", absl::StrCat("a whole number from 1 to ", kMaxCrops));
  }
  const std::string* const classes = Find(ensemble, "crop_classes");
  return classes == nullptr ? std::nullopt : ReadClasses(*classes, rules);
}

// Sets `rules` if there are some.
std::optional<Mistake> Read(const ModelSettings& ensemble, std::optional<CropRules>* rules) {
  const std::string* const models = Find(ensemble, kModels);
  if (models == nullptr) {
    for (const char* const rule : kRules) {
      if (Find(ensemble, rule) != nullptr)
        return Mistake{rule, "is set without 'crops', expected the models that see the crops there"};
    }
    return std::nullopt;
  }
  rules->emplace();
  if (auto mistake = ReadModels(*models, &**rules); mistake) return mistake;
  return ReadRules(ensemble, &**rules);
}

}  // namespace

absl::StatusOr<std::optional<CropRules>> CropRulesOf(const ModelSettings& ensemble) {
  std::optional<CropRules> rules;
  if (ensemble.backend != Backend::kEnsemble) return rules;
  const auto mistake = Read(ensemble, &rules);
  if (!mistake) return rules;
  return absl::InvalidArgumentError(
      absl::StrCat("the parameter '", mistake->parameter, "' ", mistake->problem));
}

absl::Status ReadCrops(const ConfigCheck& check, ModelSettings* ensemble) {
  std::optional<CropRules> rules;
  if (const auto mistake = Read(*ensemble, &rules); mistake)
    return check.Error(MapEntryPath("parameters", mistake->parameter), mistake->problem);
  if (!rules) return absl::OkStatus();
  const std::string field = MapEntryPath("parameters", kModels);
  if (ensemble->ensemble.size() != 1) {
    return check.Error(field, "is set for an ensemble of ", ensemble->ensemble.size(),
                       " steps, expected a single one, which detects");
  }
  for (const std::string& model : rules->models) {
    if (model == ensemble->name) return check.Error(field, "names the ensemble itself");
    if (model == ensemble->ensemble.front().model)
      return check.Error(field, "names the detector ", Quoted(model), ", expected models that see its crops");
    ensemble->ensemble.push_back({.model = model, .version = 0, .inputs = {}, .outputs = {}});
  }
  return absl::OkStatus();
}

}  // namespace saccade::server
