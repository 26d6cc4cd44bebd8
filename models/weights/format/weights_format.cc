#include "models/weights/format/weights_format.h"

#include <string_view>

#include "models/api/error.h"
#include "models/weights/format/safetensors.h"
#include "models/weights/format/state_dict.h"

namespace saccade::models {

std::vector<TensorEntry> ParseWeights(Bytes file) {
  const std::string_view start(reinterpret_cast<const char*>(file.data()), file.size());
  if (start.starts_with(std::string_view("PK\x03\x04", 4))) return ParseStateDict(file);
  if (start.starts_with("\x80\x02")) {
    throw LoadError(
        "the weights are a bare pickle, as torch.save wrote before PyTorch 1.6; save them again, or as "
        "safetensors");
  }
  return ParseSafetensors(file);
}

}  // namespace saccade::models
