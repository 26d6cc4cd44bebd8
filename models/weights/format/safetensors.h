// The safetensors format: 8 bytes of header length, a JSON header, and the tensors' bytes without holes.
#pragma once

#include <vector>

#include "models/weights/format/tensor_entry.h"

namespace saccade::models {

// Everything is checked before anything is returned: see the format's own rules, and kMaxHeaderBytes. The
// entries point into `file`, in the order of its header. Throws LoadError that names the tensor.
std::vector<TensorEntry> ParseSafetensors(Bytes file);

// The format's reference implementation stops at the same size.
inline constexpr int64_t kMaxHeaderBytes = 100'000'000;

}  // namespace saccade::models
