#include "models/networks/mask_rcnn/describe.h"

#include "models/networks/mask_rcnn/present_name.h"
#include "models/networks/mask_rcnn/table.h"

namespace saccade::models {
namespace {

Counts CountTable(const std::string& architecture, const MaskRcnnOptions& options) {
  Ledger ledger;
  RecordMaskRcnn(MakeMaskRcnnTable(architecture, options), ledger);
  return ledger.counts();
}

}  // namespace

Description DescribeMaskRcnn(const std::string& architecture, const Options& options,
                             const std::vector<std::string>& labels) {
  const MaskRcnnOptions parsed = ParseMaskRcnnOptions(architecture, options);
  Description description;
  description.architecture = architecture;
  description.task = Task::kDetection;
  description.input.fit = Fit::kKeepRatio;
  description.input.height = kNominalInput.height;
  description.input.width = kNominalInput.width;
  description.input.short_side = parsed.short_side;
  description.input.long_side = parsed.long_side;
  description.input.antialias = false;
  description.input.reduced_jpeg = parsed.reduced_jpeg;
  description.input.buckets = parsed.buckets;
  description.classes = parsed.classes;
  description.labels = labels;
  description.options = AsText(parsed);
  description.parameters = CountTable(architecture, parsed).AllParameters();
  return description;
}

Counts CountMaskRcnn(const std::string& architecture, const Options& options) {
  return CountTable(architecture, ParseMaskRcnnOptions(architecture, options));
}

NetworkTensors MaskRcnnTensors(const std::string& architecture, const Options& options) {
  Ledger ledger;
  RecordMaskRcnn(MakeMaskRcnnTable(architecture, ParseMaskRcnnOptions(architecture, options)), ledger);
  return {ledger.tensors(), {.rename = PresentName}};
}

}  // namespace saccade::models
