#include "server/repository/repository.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "models/api/error.h"
#include "models/described/picture_program.h"
#include "server/repository/completion.h"
#include "server/repository/config_check.h"
#include "server/repository/config_file.h"
#include "server/repository/files.h"
#include "server/repository/labels.h"
#include "server/repository/stamps.h"
#include "server/repository/version_policy.h"
#include "server/repository/versions.h"

namespace saccade::server {
namespace {

constexpr size_t kMaxModelNameBytes = 128;
constexpr size_t kMaxConfigBytes = size_t{1} << 20;
// Name, in errors, of a configuration that is part of a request.
constexpr char kRequest[] = "the request's configuration";
constexpr size_t kMaxDescriptionBytes = size_t{4} << 20;
constexpr size_t kMaxLabelsBytes = size_t{4} << 20;

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("._-+% ", c);
}

// The name of a model inside what should be a model's folder; empty if there is none.
std::string ModelInside(const RepositoryPath& folder) {
  const auto entries = folder.List();
  if (!entries.ok()) return "";
  for (const DirectoryEntry& entry : *entries) {
    if (entry.is_directory && (folder / entry.name / "config.pbtxt").Exists()) return entry.name;
  }
  return "";
}

// The error for a missing config.pbtxt; `status` is the error of the model without it.
absl::Status WithoutConfig(const RepositoryPath& model, const RepositoryPath& path,
                           const absl::Status& status) {
  if (const std::string inside = ModelInside(model); !inside.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(model.shown(), " is no model, but holds the model '", absl::CHexEscape(inside),
                     "'; if it is a folder of models, give it to --model-repository"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      path.shown(), " is missing, so the architecture is unknown; create it with at least ",
      "parameters { key: \"architecture\" value { string_value: \"sanet\" } }, or put the name into ",
      "the safetensors file's metadata (", status.message(), ")"));
}

absl::StatusOr<ParsedConfig> ReadText(const RepositoryPath& path, const ReadOptions& options) {
  if (options.config_json) return ParseJson(*options.config_json, kRequest);
  if (options.complete && !path.Exists()) return ParsedConfig();
  const auto text = path.ReadText(kMaxConfigBytes);
  if (!text.ok()) return text.status();
  return ParseTextFormat(*text, path.shown());
}

// Reads a saccade.json, or else the two files of Hugging Face's that together say as much; null without them.
// Sets `read` to their text.
absl::StatusOr<std::shared_ptr<const models::PictureProgram>> ReadPictures(const RepositoryPath& model,
                                                                           std::string& read) {
  const RepositoryPath ours = model / "saccade.json";
  const RepositoryPath config = model / "config.json";
  const RepositoryPath processor = model / "preprocessor_config.json";
  const bool described = ours.Exists();
  if (!described && (!config.Exists() || !processor.Exists())) return nullptr;
  const RepositoryPath& first = described ? ours : config;
  const auto text = first.ReadText(kMaxDescriptionBytes);
  if (!text.ok()) return text.status();
  const auto other = described ? text : processor.ReadText(kMaxDescriptionBytes);
  if (!other.ok()) return other.status();
  read = described ? *text : *text + *other;
  try {
    return std::make_shared<const models::PictureProgram>(described ? models::ReadDescription(*text)
                                                                    : models::ReadHuggingFace(*text, *other));
  } catch (const models::LoadError& error) {
    // Which of Hugging Face's files is wrong, the error says itself.
    const std::string file = described ? absl::StrCat(ours.shown(), ": ") : absl::StrCat(model.shown(), "/");
    return absl::InvalidArgumentError(absl::StrCat(file, error.what()));
  }
}

absl::StatusOr<ConfigFile> ReadConfig(const RepositoryPath& model, absl::string_view name,
                                      const ReadOptions& options) {
  const RepositoryPath path = model / "config.pbtxt";
  auto parsed = ReadText(path, options);
  if (!parsed.ok()) return parsed.status();
  std::string pictures_text;
  auto pictures = ReadPictures(model, pictures_text);
  if (!pictures.ok()) return pictures.status();
  absl::Status completed =
      options.complete ? Complete(model, *pictures != nullptr, &parsed->message) : absl::OkStatus();
  if (!completed.ok()) return completed;
  auto config =
      ReadSettings(*parsed, options.config_json ? kRequest : path.shown(), name, *std::move(pictures));
  if (config.ok() && config->settings.pictures != nullptr)
    config->settings.pictures_text = std::move(pictures_text);
  if (config.ok() || options.config_json || path.Exists()) return config;
  return WithoutConfig(model, path, config.status());
}

absl::StatusOr<std::vector<std::string>> ReadLabels(const RepositoryPath& model, const std::string& named) {
  const RepositoryPath path = model / (named.empty() ? "labels.txt" : named);
  if (named.empty() && !path.Exists()) return std::vector<std::string>();
  const auto text = path.ReadText(kMaxLabelsBytes);
  if (!text.ok()) return text.status();
  return ParseLabels(*text, path.shown());
}

// Reads the labels file and the label files of the outputs.
absl::Status ReadAllLabels(const RepositoryPath& model, ConfigFile* config) {
  ModelSettings& settings = config->settings;
  for (size_t i = 0; i < config->output_label_files.size(); ++i) {
    const std::string& file = config->output_label_files[i];
    // Ignored outputs (of backend saccade) may still name the labels file.
    if (i >= settings.outputs.size() && config->labels_file.empty()) config->labels_file = file;
    if (file.empty() || i >= settings.outputs.size()) continue;
    auto labels = ReadLabels(model, file);
    if (!labels.ok()) return labels.status();
    settings.outputs[i].labels = *std::move(labels);
  }
  auto labels = ReadLabels(model, config->labels_file);
  if (!labels.ok()) return labels.status();
  settings.labels = *std::move(labels);
  return absl::OkStatus();
}

absl::Status FindWarmupFiles(const RepositoryPath& model, ModelSettings* settings) {
  for (Warmup& warmup : settings->warmups) {
    for (WarmupInput& input : warmup.inputs) {
      if (input.data != WarmupInput::Data::kFile) continue;
      const auto resolved = (model / "warmup" / input.file_path).Resolve();
      if (!resolved.ok()) return resolved.status();
      input.file_path = resolved->string();
    }
  }
  return absl::OkStatus();
}

// More samples would only make the model's start longer.
constexpr size_t kMaxSamples = 64;

// Lists the files of the folder samples, if there is one, without hidden ones and without links to files
// elsewhere: the page shows the samples to everybody who may predict.
absl::Status FindSamples(const RepositoryPath& model, ModelSettings* settings) {
  const RepositoryPath folder = model / "samples";
  if (!folder.Exists()) return absl::OkStatus();
  const auto entries = folder.List();
  if (!entries.ok()) return entries.status();
  const auto inside = folder.Resolve();
  if (!inside.ok()) return inside.status();
  size_t elsewhere = 0;
  for (const DirectoryEntry& entry : *entries) {
    if (entry.is_directory || entry.name.front() == '.') continue;
    const auto resolved = (folder / entry.name).Resolve();
    if (!resolved.ok()) return resolved.status();
    if (absl::StartsWith(resolved->string(), inside->string() + "/")) {
      settings->samples.push_back(resolved->string());
    } else {
      ++elsewhere;
    }
  }
  if (elsewhere > 0) {
    settings->warnings.push_back(absl::StrCat(folder.shown(), ": ", elsewhere,
                                              " of its files are links that lead out of the folder, and are "
                                              "left out; copy the files into it"));
  }
  std::sort(settings->samples.begin(), settings->samples.end());
  if (settings->samples.size() > kMaxSamples) {
    settings->warnings.push_back(absl::StrCat(folder.shown(), ": has ", settings->samples.size(),
                                              " files, of which the first ", kMaxSamples, " are used"));
    settings->samples.resize(kMaxSamples);
  }
  return absl::OkStatus();
}

std::vector<std::string> Texts(const std::vector<int64_t>& versions) {
  std::vector<std::string> texts;
  for (const int64_t version : versions) texts.push_back(absl::StrCat(version));
  return texts;
}

// Removes the versions that are not served.
absl::Status Choose(const RepositoryPath& model, ModelSettings* settings,
                    std::vector<ModelVersion>* versions) {
  std::vector<int64_t> present;
  for (const ModelVersion& version : *versions) present.push_back(version.version);
  const VersionPolicy& policy = settings->version_policy;
  const std::vector<int64_t> chosen = Chosen(policy, present);
  std::vector<int64_t> missing;
  std::set_difference(policy.versions.begin(), policy.versions.end(), present.begin(), present.end(),
                      std::back_inserter(missing));
  const std::string there = NamesOfSome(Texts(present));
  if (chosen.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(model.shown(), ": version_policy names versions ",
                                                   NamesOfSome(Texts(missing)),
                                                   ", which do not exist; available are ", there));
  }
  if (!missing.empty()) {
    settings->warnings.push_back(absl::StrCat(model.shown(), ": version_policy names versions ",
                                              NamesOfSome(Texts(missing)),
                                              ", which do not exist; available are ", there));
  }
  const auto is_left_out = [&](const ModelVersion& version) {
    return !std::binary_search(chosen.begin(), chosen.end(), version.version);
  };
  versions->erase(std::remove_if(versions->begin(), versions->end(), is_left_out), versions->end());
  return absl::OkStatus();
}

// Whether the shadow version, if there is one, is served beside another.
absl::Status CheckShadow(const RepositoryPath& model, const ModelSettings& settings,
                         const std::vector<ModelVersion>& versions) {
  if (!settings.shadow) return absl::OkStatus();
  const int64_t shadow = settings.shadow->version;
  const auto wrong = [&](const auto&... text) {
    return absl::InvalidArgumentError(absl::StrCat(model.shown(), ": the parameter 'shadow' ", text...));
  };
  if (settings.backend == Backend::kEnsemble)
    return wrong("is set for an ensemble, which computes nothing; set it for the models of its steps");
  std::vector<std::string> served;
  bool is_served = false;
  for (const ModelVersion& version : versions) {
    served.push_back(absl::StrCat(version.version));
    is_served = is_served || version.version == shadow;
  }
  const std::string how =
      "by default only the highest version is; to serve more, add e.g. version_policy { latest { "
      "num_versions: "
      "2 } }";
  if (!is_served) {
    return wrong("names version ", shadow, ", which is not served; served are ", NamesOfSome(served), " (",
                 how, ")");
  }
  if (versions.size() == 1) {
    return wrong("names version ", shadow,
                 ", the only one that is served, which would be compared with itself; ",
                 "serve the version that answers too (", how, "), or remove the parameter");
  }
  for (const auto& [label, version] : settings.version_labels) {
    if (version != shadow || label != kStableLabel) continue;
    return wrong(
        "names version ", shadow, ", which version_labels calls '", label,
        "', so that it would be compared with itself; name the version to be tried, or change the label");
  }
  return absl::OkStatus();
}

// Makes `promote` a part of the rule for the shadow version, after CheckShadow().
absl::Status JoinPromote(const RepositoryPath& model, const std::vector<ModelVersion>& versions,
                         ModelSettings* settings) {
  if (!settings->promote) return absl::OkStatus();
  const auto wrong = [&](const auto&... text) {
    return absl::InvalidArgumentError(absl::StrCat(model.shown(), ": the parameter 'promote' ", text...));
  };
  if (!settings->shadow) {
    return wrong("is set without 'shadow', which names the version that may be promoted; ",
                 "set it too, e.g. to version=4,share=0.1");
  }
  if (settings->from_request) {
    return wrong("is part of a request, and would be lost when the daemon ends; ",
                 "write it into config.pbtxt, and load the model without a configuration");
  }
  const int64_t shadow = settings->shadow->version;
  for (const ModelVersion& version : versions)
    if (version.version != shadow) settings->promote->replaces = version.version;
  if (const auto stable = settings->version_labels.find(std::string(kStableLabel));
      stable != settings->version_labels.end())
    settings->promote->replaces = stable->second;
  const auto is_replaced = [&](const ModelVersion& version) {
    return version.version == settings->promote->replaces;
  };
  if (std::none_of(versions.begin(), versions.end(), is_replaced)) {
    return wrong("would replace version ", settings->promote->replaces, ", which version_labels calls '",
                 kStableLabel, "' and which is not served; serve it, or change the label");
  }
  settings->shadow->promote = *std::exchange(settings->promote, std::nullopt);
  return absl::OkStatus();
}

absl::StatusOr<ModelEntry> ReadModelFrom(const RepositoryPath& root, const std::string& repository,
                                         absl::string_view name, const ReadOptions& options) {
  if (absl::Status status = CheckModelName(name); !status.ok()) return status;
  const RepositoryPath folder = root / name;
  if (!folder.Exists()) {
    return absl::NotFoundError(absl::StrCat("the model repository has no folder '", name, "'"));
  }
  // Fails for a file, a FIFO, a dangling link, a link out of the repository, and an unreadable folder.
  if (const auto entries = folder.List(); !entries.ok()) return entries.status();
  auto config = ReadConfig(folder, name, options);
  if (!config.ok()) return config.status();
  config->settings.repository = repository;
  config->settings.from_request = options.config_json.has_value();
  absl::Status status = ReadAllLabels(folder, &*config);
  if (status.ok()) status = FindWarmupFiles(folder, &config->settings);
  if (status.ok()) status = FindSamples(folder, &config->settings);
  if (!status.ok()) return status;
  auto versions = ReadVersions(folder, config->settings.backend, config->weights_file);
  if (!versions.ok()) return versions.status();
  status = Choose(folder, &config->settings, &*versions);
  if (status.ok()) status = CheckShadow(folder, config->settings, *versions);
  if (status.ok()) status = JoinPromote(folder, *versions, &config->settings);
  if (!status.ok()) return status;
  return ModelEntry{std::move(config->settings), *std::move(versions)};
}

}  // namespace

absl::Status CheckModelName(absl::string_view name) {
  const bool fits = !name.empty() && name.size() <= kMaxModelNameBytes && name.front() != '.' &&
                    name.front() != ' ' && name.back() != ' ';
  if (fits && std::all_of(name.begin(), name.end(), IsNameCharacter)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "'", absl::CHexEscape(name.substr(0, kMaxModelNameBytes)), "' is not a model name; expected 1 to ",
      kMaxModelNameBytes,
      " of A-Z a-z 0-9 . _ - + % and space, not beginning with a dot, and no space at either end"));
}

absl::StatusOr<ModelEntry> ReadModel(const std::string& repository, absl::string_view name,
                                     const ReadOptions& options) {
  const auto root = RepositoryPath::Root(repository);
  if (!root.ok()) return root.status();
  return ReadModelFrom(*root, repository, name, options);
}

absl::StatusOr<Scan> ScanRepository(const std::string& repository, const ReadOptions& options) {
  const auto root = RepositoryPath::Root(repository);
  if (!root.ok()) return root.status();
  const auto names = ListModels(repository);
  if (!names.ok()) return names.status();
  Scan scan;
  for (const std::string& name : *names) {
    auto model = ReadModelFrom(*root, repository, name, options);
    if (model.ok()) {
      scan.models.push_back(*std::move(model));
    } else {
      scan.broken.push_back({absl::CHexEscape(name), model.status()});
    }
  }
  return scan;
}

}  // namespace saccade::server
