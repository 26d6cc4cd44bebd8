// The safetensors format: 8 bytes of header length, a JSON header, and the tensors' bytes without holes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/weights/format/tensor_entry.h"

namespace saccade::models {

// Everything is checked before anything is returned: see the format's own rules, and kMaxHeaderBytes. The
// entries point into `file`, in the order of its header. Throws LoadError that names the tensor.
std::vector<TensorEntry> ParseSafetensors(Bytes file);

// The header's __metadata__, empty without one. The file is checked as above.
std::map<std::string, std::string> SafetensorsMetadata(Bytes file);

// The format's reference implementation stops at the same size.
inline constexpr int64_t kMaxHeaderBytes = 100'000'000;

}  // namespace saccade::models
