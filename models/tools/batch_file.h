// A batch in a file, as the Python side writes it for the programs here.
#pragma once

#include <string>

#include "models/model.h"

namespace saccade::models {

// A safetensors file with
//   pixels      F32 [B, channels, H, W], or [B, channels, D, H, W] of clips and volumes
//   placements  F32 or F64 [B, 6]: the height and width of the picture as sent, as scaled, and of its bucket;
//               or [B, 8]: and how many frames or planes were sent, and the network takes
// Throws std::runtime_error, or LoadError for what is no such file.
Batch ReadBatch(const std::string& path);

}  // namespace saccade::models
