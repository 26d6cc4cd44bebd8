// Options of classifiers that say how pictures become the network's input, with torchvision's words. Does not
// include LibTorch.
#pragma once

#include <cstdint>

#include "models/api/options.h"
#include "models/api/placement.h"
#include "models/networks/option_reader.h"

namespace saccade::models {

// An architecture's defaults.
struct PictureDefaults {
  // Name of the option for the side of the network's input: torchvision's word is crop_size.
  const char* size_option = "input_size";
  int64_t size = 224;
  // Shorter side of a scaled picture for a network of 224; other sizes keep the ratio.
  int64_t resize_for_224 = 256;
  bool reduced_jpeg = true;
};

// Defaults of torchvision's classifiers. `resize_for_224` is that of weights="DEFAULT".
PictureDefaults TorchvisionPictures(int64_t resize_for_224);

// Reads the side, resize_size, interpolation, mean, std and reduced_jpeg. Throws a LoadError that names the
// option, its value and the legal values.
ImageInput ReadPictureOptions(OptionReader& reader, const PictureDefaults& defaults);

// Adds the same options to `text`.
void AddPictureOptions(const ImageInput& input, const PictureDefaults& defaults, Options& text);

}  // namespace saccade::models
