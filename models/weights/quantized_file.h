// Weights files whose convolutions are quantized to int8.
#pragma once

#include <map>
#include <string>

#include "models/layers/int8_convolution.h"

namespace saccade::models {

// The name that such a file has beside the weights from which it was made.
inline constexpr char kInt8WeightsName[] = "weights.int8.safetensors";

// What the metadata of such a file call the SHA-256 of the weights from which it was made.
inline constexpr char kSourceDigestName[] = "saccade_source_sha256";

struct QuantizedLayer {
  Int8Weight weight;
  Int8Grids grids;
};

// Whether a weight in the file is quantized. A state_dict's never is; only its first bytes are read. Throws a
// LoadError if the file cannot be read.
bool IsQuantized(const std::string& path);

// Returns the SHA-256 of the weights from which the file was made, in hexadecimal digits; "" if it does not
// say. Throws a LoadError if the file cannot be read.
std::string SourceDigest(const std::string& path);

// Writes the tensors of `source` to `path`, those of `layers` quantized. `layers` has them by their names in
// the file, which end in ".weight". `metadata` is written into the header; the source's is not. `path` is
// written whole or not at all. Throws a LoadError.
void WriteQuantized(const std::string& source, const std::map<std::string, QuantizedLayer>& layers,
                    const std::string& path, const std::map<std::string, std::string>& metadata = {});

}  // namespace saccade::models
