#include "models/registry.h"

#include "models/error.h"
#include "models/model.h"
#include "models/networks/sanet/sanet.h"

namespace saccade::models {
namespace {

struct Loader {
  const char* name;
  std::unique_ptr<Model> (*load)(const Options&, const std::string&, const std::vector<std::string>&);
};

// Apart from architectures.cc, so that whoever only counts a network does not load LibTorch for it.
constexpr Loader kLoaders[] = {
    {"sanet", LoadSanet},
};

}  // namespace

std::unique_ptr<Model> Load(const std::string& architecture, const Options& options,
                            const std::string& weights_path, const std::vector<std::string>& labels) {
  // What is wrong with the name, the options or the labels is told before the file's faults.
  Describe(architecture, options, labels);
  try {
    for (const Loader& loader : kLoaders) {
      if (architecture == loader.name) return loader.load(options, weights_path, labels);
    }
    throw LoadError(architecture + " is described, but cannot be loaded; this is a bug in saccade");
  } catch (const LoadError&) {
    throw;
  } catch (const std::exception& error) {
    // LibTorch's own errors (memory, mostly): a model that cannot be made is one kind of error to the caller.
    throw LoadError(weights_path + ": cannot make " + architecture + ": " + error.what());
  }
}

}  // namespace saccade::models
