#include "models/tools/quantize_on_batch.h"

#include <cstddef>
#include <cstdint>

#include "models/quantize/quantizer.h"

namespace saccade::models {

void QuantizeOnBatch(const std::string& architecture, const Options& options, const std::string& weights,
                     const Batch& batch, const std::string& path) {
  const QuantizeInput input = {
      .architecture = architecture,
      .options = options,
      .labels = {},
      .weights_path = weights,
      .items = batch.placements.size(),
      .run = [&](const Model& model, size_t item) {
        const auto index = static_cast<int64_t>(item);
        return model.Run({.pixels = batch.pixels.narrow(0, index, 1), .placements = {batch.placements[item]}})
            .front();
      }};
  Quantize(input, {.all_layers = true}, path);
}

}  // namespace saccade::models
