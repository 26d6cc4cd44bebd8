// Reads a batch from a file, as Python scripts write it for the programs here.
#pragma once

#include <string>

#include "models/api/model.h"

namespace saccade::models {

// Reads a safetensors file with
//   pixels      F32 [B, channels, H, W], or [B, channels, D, H, W] for clips and volumes
//   placements  F32 or F64 [B, 6]: height and width of the picture as sent, as scaled, and of its bucket;
//               or [B, 8]: followed by the number of frames or planes as sent, and as the network takes them
// Throws std::runtime_error, or LoadError if it is not a safetensors file.
Batch ReadBatch(const std::string& path);

}  // namespace saccade::models
