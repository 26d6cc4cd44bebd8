#include "models/layers/calibration.h"

#include <algorithm>
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
  auto layer = std::make_shared<CalibratedLayer>(std::move(file_name), std::move(weight), std::move(make));
  units_.push_back({.module = "", .layers = {layer}});
  return layer;
}

void Calibration::Join(std::string module, const std::vector<std::string>& file_names) {
  CalibratedUnit joined{.module = std::move(module), .layers = {}};
  for (const std::string& file_name : file_names) {
    const auto alone = std::find_if(units_.begin(), units_.end(), [&](const CalibratedUnit& unit) {
      return unit.module.empty() && unit.layers.front()->file_name() == file_name;
    });
    if (alone == units_.end()) throw std::logic_error(file_name + " is not a layer that can be joined");
    joined.layers.push_back(alone->layers.front());
    units_.erase(alone);
  }
  units_.push_back(std::move(joined));
}

void Calibration::Observe(CalibratedLayer& layer, const at::Tensor& input, const at::Tensor& output) const {
  if (phase_ == Phase::kRanges) layer.Widen(input, output);
  if (phase_ == Phase::kHistograms) layer.Count(input, output);
}

}  // namespace saccade::models
