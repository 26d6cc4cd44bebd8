// A strict reader of the zip archives that torch.save writes: stored entries only, nothing inflated.
#pragma once

#include <map>
#include <string>

#include "models/weights/format/tensor_entry.h"

namespace saccade::models {

// Name to contents, pointing into `file`. Sizes and places come from the central directory; every entry's
// local header is checked against it. Refuses compression, encryption, duplicate names, overlapping entries,
// and archives beyond 4 GiB. Checksums are not compared: PyTorch may be told not to write them. Throws
// LoadError.
std::map<std::string, Bytes> ReadZip(Bytes file);

}  // namespace saccade::models
