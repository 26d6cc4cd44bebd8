// The safetensors format: 8 bytes of header length, a JSON header, and the tensors' bytes without gaps.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/weights/format/tensor_entry.h"

namespace saccade::models {

// Checks the whole header against the format's rules and kMaxHeaderBytes before returning. The entries point
// into `file`, in the order of its header. Looks at no byte behind the header. Throws a LoadError that names
// the tensor.
std::vector<TensorEntry> ParseSafetensors(Bytes file);

// Returns the header's __metadata__, or an empty map. Checks the file as ParseSafetensors() does.
std::map<std::string, std::string> SafetensorsMetadata(Bytes file);

// Maximum header size, the same as in the format's reference implementation.
inline constexpr int64_t kMaxHeaderBytes = 100'000'000;

}  // namespace saccade::models
