#include "models/networks/mask_rcnn/checkpoint.h"

#include "models/api/error.h"
#include "models/networks/mask_rcnn/present_name.h"

namespace saccade::models {
namespace {

// What a file's names say about the form of its pyramid.
struct SeenNames {
  bool pyramid = false;
  bool top = false;

  void Note(const std::string& name) {
    if (name == LateralName(0) + ".weight") pyramid = true;
    if (name == std::string(kTopName) + ".weight") top = true;
  }
};

// Returns a hint for the error message; empty if the form is the requested one or cannot be determined.
std::string Hint(const SeenNames& seen, bool paper) {
  if (!seen.pyramid || seen.top == paper) return "";
  return paper ? "\nThey have no " + std::string(kTopName) +
                     ": if they come from torchvision, set the option fpn to torchvision."
               : "\nThey have " + std::string(kTopName) +
                     ", which only the paper's pyramid has: set the option fpn to paper.";
}

}  // namespace

LoadedWeights LoadMaskRcnnWeights(const std::string& path, const MaskRcnnTable& table) {
  Ledger ledger;
  RecordMaskRcnn(table, ledger);
  SeenNames seen;
  const auto rename = [&seen](const std::string& name) {
    std::string present = PresentName(name);
    seen.Note(present);
    return present;
  };
  try {
    return LoadWeights(path, ledger.tensors(), {.rename = rename});
  } catch (const MisfitError& error) {
    throw MisfitError(error.what() + Hint(seen, table.options.paper_pyramid));
  }
}

}  // namespace saccade::models
