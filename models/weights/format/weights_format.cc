#include "models/weights/format/weights_format.h"

#include <string_view>

#include "models/weights/format/safetensors.h"
#include "models/weights/format/state_dict.h"

namespace saccade::models {

std::vector<TensorEntry> ParseWeights(Bytes file) {
  const std::string_view start(reinterpret_cast<const char*>(file.data()), file.size());
  const bool archive = start.starts_with(std::string_view("PK\x03\x04", 4));
  // Safetensors' header may have a length that begins like a pickle: 640 bytes, for example. It follows the
  // eight bytes of the length, and begins with a brace.
  const bool pickle = start.starts_with("\x80\x02") && !(start.size() > 8 && start[8] == '{');
  if (archive || pickle) return ParseStateDict(file);
  return ParseSafetensors(file);
}

}  // namespace saccade::models
