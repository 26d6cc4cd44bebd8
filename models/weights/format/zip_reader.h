// A strict reader for the zip archives that torch.save writes: stored entries only, no decompression.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/weights/format/tensor_entry.h"

namespace saccade::models {

// Returns contents by name; they point into `file`. Sizes and offsets come from the central directory, and
// every entry's local header is checked against it. Rejects compression, encryption, duplicate names,
// overlapping entries, and archives beyond 4 GiB. Does not verify checksums, as PyTorch can be configured not
// to write them. Throws LoadError.
std::map<std::string, Bytes> ReadZip(Bytes file);

// Returns the names in the archive's directory, whatever its entries are. Throws LoadError if there is no
// directory.
std::vector<std::string> ZipNames(Bytes file);

}  // namespace saccade::models
