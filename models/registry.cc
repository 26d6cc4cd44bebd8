#include "models/registry.h"

#include "models/error.h"
#include "models/model.h"
#include "models/networks/sanet/sanet.h"

namespace saccade::models {
namespace {

struct Architecture {
  const char* name;
  Description (*describe)(const Options&, const std::vector<std::string>&);
  std::unique_ptr<Model> (*load)(const Options&, const std::string&, const std::vector<std::string>&);
  Counts (*count)(const Options&);
};

// Sorted by name.
constexpr Architecture kArchitectures[] = {
    {"sanet", DescribeSanet, LoadSanet, CountSanet},
};

const Architecture& Find(const std::string& name) {
  std::string known;
  for (const Architecture& architecture : kArchitectures) {
    if (name == architecture.name) return architecture;
    known += (known.empty() ? "" : ", ") + std::string(architecture.name);
  }
  throw LoadError("unknown architecture '" + name + "'; there are: " + known);
}

void CheckLabels(const Description& description) {
  const auto labels = static_cast<int64_t>(description.labels.size());
  if (labels == 0 || labels == description.classes) return;
  throw LoadError(description.architecture + ": there are " + std::to_string(labels) + " labels for " +
                  std::to_string(description.classes) +
                  " classes; give one per class, or set the option classes");
}

}  // namespace

std::vector<std::string> Architectures() {
  std::vector<std::string> names;
  for (const Architecture& architecture : kArchitectures) names.emplace_back(architecture.name);
  return names;
}

Description Describe(const std::string& architecture, const Options& options,
                     const std::vector<std::string>& labels) {
  Description description = Find(architecture).describe(options, labels);
  CheckLabels(description);
  return description;
}

std::unique_ptr<Model> Load(const std::string& architecture, const Options& options,
                            const std::string& weights_path, const std::vector<std::string>& labels) {
  Describe(architecture, options,
           labels);  // what is wrong with options or labels is told before the file's faults
  try {
    return Find(architecture).load(options, weights_path, labels);
  } catch (const LoadError&) {
    throw;
  } catch (const std::exception& error) {
    // LibTorch's own errors (memory, mostly): a model that cannot be made is one kind of error to the caller.
    throw LoadError(weights_path + ": cannot make " + architecture + ": " + error.what());
  }
}

Counts Count(const std::string& architecture, const Options& options) {
  return Find(architecture).count(options);
}

}  // namespace saccade::models
