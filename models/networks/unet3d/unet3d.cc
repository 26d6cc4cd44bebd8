#include "models/networks/unet3d/unet3d.h"

#include <optional>
#include <utility>

#include "models/networks/unet3d/describe.h"
#include "models/networks/unet3d/maps.h"
#include "models/networks/unet3d/projection.h"
#include "models/networks/unet3d/table.h"
#include "models/networks/unet3d/unet.h"
#include "models/networks/unet3d/units.h"
#include "models/tasks/restore.h"

namespace saccade::models {
namespace {

class UnetModel : public Model {
 public:
  UnetModel(Description description, const UnetOptions& options, const TensorMap& tensors)
      : description_(std::move(description)), options_(options), unet_(options, tensors) {
    if (options.projects) projection_.emplace(options, tensors);
  }

  const Description& description() const override { return description_; }

  std::vector<TaskResult> Run(const Batch& batch) const override {
    return Restore(description_, batch, [this](const at::Tensor& volume, const Progress::Report& report) {
      return Restored(volume, report);
    });
  }

 private:
  at::Tensor Restored(const at::Tensor& volume, const Progress::Report& report) const {
    const VolumeSides sent = SidesOf(volume);
    const VolumeSides padded = {options_.projects ? sent[0] : UnetSide(sent[0]), UnetSide(sent[1]),
                                UnetSide(sent[2])};
    const Units units = options_.percentile ? PercentileUnits(volume) : Units{};
    at::Tensor input = Normalised(volume, units, padded);
    const VolumeSides flat = {options_.projects ? 1 : padded[0], padded[1], padded[2]};
    Progress progress(report, unet_.Work(flat) + (projection_ ? projection_->Work(padded) : 0));
    if (projection_) input = (*projection_)(input, progress);
    at::Tensor answer = unet_(input, progress);
    if (options_.residual) answer.add_(input[0][0]);
    ToUnits(answer, units);
    return View(answer, {.begin = {}, .size = {options_.projects ? 1 : sent[0], sent[1], sent[2]}});
  }

  Description description_;
  UnetOptions options_;
  Unet unet_;
  std::optional<Projection> projection_;
};

}  // namespace

std::unique_ptr<Model> LoadUnet(const std::string& architecture, const Options& options,
                                const std::string& weights_path, const std::vector<std::string>& labels,
                                const Target& target) {
  const UnetOptions parsed = ParseUnetOptions(architecture, options);
  TensorMap tensors = LoadWeights(weights_path, RecordUnet(parsed).tensors()).tensors;
  tensors.target = target;
  // Planes are computed as volumes of depth 1.
  for (auto& [name, tensor] : tensors) {
    if (tensor.dim() == 4) tensor = tensor.unsqueeze(2);
  }
  return std::make_unique<UnetModel>(DescribeUnet(architecture, options, labels), parsed, tensors);
}

}  // namespace saccade::models
