#include "models/layers/calibration.h"

#include <stdexcept>
#include <utility>

namespace saccade::models {

void CalibratedLayer::Widen(const at::Tensor& input, const at::Tensor& output) {
  try {
    input_.Widen(input);
    output_.Widen(output);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(file_name_ + ": " + error.what());
  }
}

void CalibratedLayer::Count(const at::Tensor& input, const at::Tensor& output) {
  input_.Count(input);
  output_.Count(output);
}

std::shared_ptr<CalibratedLayer> Calibration::Add(std::string file_name, at::Tensor weight,
                                                  CalibratedLayer::Maker make) {
  layers_.push_back(
      std::make_shared<CalibratedLayer>(std::move(file_name), std::move(weight), std::move(make)));
  return layers_.back();
}

void Calibration::Observe(CalibratedLayer& layer, const at::Tensor& input, const at::Tensor& output) const {
  if (phase_ == Phase::kRanges) layer.Widen(input, output);
  if (phase_ == Phase::kHistograms) layer.Count(input, output);
}

}  // namespace saccade::models
