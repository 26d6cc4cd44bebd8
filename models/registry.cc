#include "models/registry.h"

#include <malloc.h>

#include "models/error.h"
#include "models/model.h"
#include "models/networks/deeplab/deeplab.h"
#include "models/networks/mask_rcnn/mask_rcnn.h"
#include "models/networks/psmnet/psmnet.h"
#include "models/networks/sanet/sanet.h"

namespace saccade::models {
namespace {

struct Loader {
  const char* name;
  std::unique_ptr<Model> (*load)(const std::string& architecture, const Options&, const std::string& weights,
                                 const std::vector<std::string>& labels);
};

// Apart from architectures.cc, so that whoever only counts a network does not load LibTorch for it.
constexpr Loader kLoaders[] = {
    {"deeplabv2_kao_kv", LoadDeepLab},
    {"deeplabv2_kao_qkv", LoadDeepLab},
    {"ea_mask_rcnn_r101", LoadMaskRcnn},
    {"ea_mask_rcnn_r50", LoadMaskRcnn},
    {"ea_mask_rcnn_x101", LoadMaskRcnn},
    {"ea_psmnet", LoadPsmnet},
    {"sanet", LoadSanet},
};

}  // namespace

std::unique_ptr<Model> Load(const std::string& architecture, const Options& options,
                            const std::string& weights_path, const std::vector<std::string>& labels) {
  // What is wrong with the name, the options or the labels is told before the file's faults.
  Describe(architecture, options, labels);
  try {
    for (const Loader& loader : kLoaders) {
      if (architecture != loader.name) continue;
      std::unique_ptr<Model> model = loader.load(architecture, options, weights_path, labels);
      malloc_trim(0);  // what folding took in between; where malloc is tcmalloc, that sees to it itself
      return model;
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
