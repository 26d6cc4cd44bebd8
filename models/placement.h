// Where a picture lies in the network's input: scaled how far, and padded to which bucket. No LibTorch here.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace saccade::models {

struct Size {
  int64_t height = 0;
  int64_t width = 0;

  friend bool operator==(const Size&, const Size&) = default;
};

// The sizes that batches have. A picture is padded, to the right and below, to its own bucket whether it is
// alone or not, so that its answer does not depend on what else came.
struct Buckets {
  // Not empty: a picture goes to the smallest that holds it, or is scaled down to the one that it fills best.
  std::vector<Size> sizes;
  // Otherwise each side is rounded up to a multiple of this.
  int64_t stride = 1;
};

// What one item of the network's input is made of.
enum class Medium {
  // One picture, or two of a stereo pair.
  kPictures,
  // Pictures that follow each other, each scaled and cropped as one would be.
  kClip,
  // Planes of one quantity, as a microscope measures it: never scaled, and normalised by the model itself.
  kVolume,
};

struct ClipInput {
  // A clip may have so many.
  int64_t most_frames = 0;
  // Frames are added, all zero, until their number is a multiple of this: part of what the model computes.
  int64_t frame_multiple = 1;
  // Of a video so many are taken.
  double frames_per_second = 0;
};

struct VolumeInput {
  int64_t most_voxels = 0;
  // The planes that a warm-up has.
  int64_t depth = 1;
};

enum class Fit {
  // The shorter side is scaled to short_side, and the centre cut out: every picture has the network's size.
  kCropCentre,
  // Scaled as a whole: the shorter side to short_side, or less far, so that the longer is at most long_side.
  // A short_side of 0 leaves pictures as they are, if they are small enough.
  kKeepRatio,
};

// How a decoded 8-bit picture becomes the network's input: scaled, cropped or padded, then
// (value / 255 - mean) / std in each channel.
struct ImageInput {
  Medium medium = Medium::kPictures;
  ClipInput clip = {};      // kClip alone
  VolumeInput volume = {};  // kVolume alone
  // Pictures in one item: 1, or 2 for a stereo pair, the left one first. Their channels follow each other.
  int64_t views = 1;
  Fit fit = Fit::kCropCentre;
  // kCropCentre: the network's input. kKeepRatio: the nominal size, which counts and warm-up are for.
  int64_t height = 224;
  int64_t width = 224;
  int64_t short_side = 256;
  int64_t long_side = 0;  // kKeepRatio alone
  // Shrinking averages over what becomes one pixel; without it, it is bilinear between the nearest pixels, as
  // torchvision's detectors are trained.
  bool antialias = true;
  Buckets buckets = {};  // kKeepRatio alone
  std::array<float, 3> mean = {0.485F, 0.456F, 0.406F};
  std::array<float, 3> std = {0.229F, 0.224F, 0.225F};
  bool rgb = true;  // channel order of the tensor; false means BGR

  int64_t channels() const { return medium == Medium::kVolume ? 1 : 3 * views; }
};

struct Placement {
  Size sent;    // the picture as it came, upright
  Size scaled;  // what it is scaled to: the part of the bucket that is picture, from the top left
  Size bucket;  // what it is padded to, with zeros
  // Frames of a clip, or planes of a volume: as they came, and as the network takes them, filled up with
  // zeros behind. Both are 1 for pictures.
  int64_t sent_depth = 1;
  int64_t depth = 1;

  friend bool operator==(const Placement&, const Placement&) = default;
};

// REQUIRES: both sides of `sent` are at least 1. With kKeepRatio no side of `scaled` is below 1, and the
// arithmetic is that of torchvision's detection transform, to the pixel.
Placement Place(const ImageInput& input, Size sent);

// A clip of so many frames, each as large as `sent`.
Placement PlaceClip(const ImageInput& input, Size sent, int64_t frames);

// A volume of so many planes, as it is.
Placement PlaceVolume(Size sent, int64_t planes);

// What classifiers' pictures are scaled to before their centre is cut out: to 256 for 224, as is usual, and
// other sizes in that ratio.
int64_t CropShortSide(int64_t input_size);

// What warms a model up: items as large as their buckets, of the buckets that a listed configuration has, or
// of the one that an item of the nominal size goes to.
std::vector<Placement> PlacementsToWarm(const ImageInput& input);

// "stride:32", or "800x1344,1344x800" (height x width). Throws LoadError that names what is legal; sides are
// 1 to 8192, at most 64 sizes.
Buckets ParseBuckets(const std::string& architecture, const std::string& text);
std::string AsText(const Buckets& buckets);

}  // namespace saccade::models
