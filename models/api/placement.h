// Where a picture lies in the network's input: its scale and the bucket it is padded to. Does not include
// LibTorch.
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

// The sizes that batches can have. A picture is padded, to the right and below, to its own bucket whether or
// not it shares a batch, so that its result does not depend on other requests.
struct Buckets {
  // If not empty, a picture goes to the smallest size that holds it; if none does, it is scaled down to the
  // one that allows the largest scale.
  std::vector<Size> sizes;
  // If `sizes` is empty, each side is rounded up to a multiple of this.
  int64_t stride = 1;
};

// What one item of the network's input consists of.
enum class Medium {
  // One picture, or the two of a stereo pair.
  kPictures,
  // Consecutive frames, each scaled and cropped as a picture would be.
  kClip,
  // Planes of one quantity, as a microscope measures it: never scaled, and normalised by the model itself.
  kVolume,
};

struct ClipInput {
  // Maximum frames of a clip.
  int64_t max_frames = 0;
  // Clips are filled up with zero frames to a multiple of this, and the model computes over them.
  int64_t frame_multiple = 1;
  // Rate at which frames are sampled from a video.
  double frames_per_second = 0;
};

struct VolumeInput {
  // The most voxels of a volume as the model computes it, with its sides filled up to the multiples below.
  int64_t max_voxels = 0;
  // Multiples of the depth, and of the height and the width.
  int64_t depth_multiple = 1;
  int64_t side_multiple = 1;
  // Number of planes for a warm-up.
  int64_t depth = 1;
};

enum class Fit {
  // The shorter side is scaled to short_side, or the whole picture to before_crop, and the centre is cut out:
  // every picture has the network's size.
  kCropCentre,
  // Each side is scaled to the network's size, so that the picture's proportions change.
  kExact,
  // Scaled as a whole until it fits the network's size, and put into the middle; the rest has the value
  // `fill`. Rounds as YOLO's letterbox does.
  kLetterbox,
  // Scaled as a whole: the shorter side to short_side, or less if the longer side would exceed long_side.
  // With a short_side of 0, pictures are only scaled down, to a longer side of at most long_side. With
  // either_side, one of the sides is scaled to the network's size instead.
  kKeepRatio,
};

// The filter that scales a picture. kBicubic is torchvision's and Pillow's (a = -0.5), for antialiased
// scaling only; its result is limited to a pixel's values.
enum class Interpolation { kBilinear, kBicubic };

// How a decoded 8-bit picture becomes the network's input: scaled, cropped or padded, then (value / 255 -
// mean) / std in each channel.
struct ImageInput {
  Medium medium = Medium::kPictures;
  ClipInput clip = {};      // only for kClip
  VolumeInput volume = {};  // only for kVolume
  // Pictures in one item: 1, or 2 for a stereo pair, the left one first. Their channels are concatenated.
  int64_t views = 1;
  Fit fit = Fit::kCropCentre;
  // kCropCentre: size of the network's input. kKeepRatio: the nominal size, used for counts and warm-up, and
  // for either_side.
  int64_t height = 224;
  int64_t width = 224;
  int64_t short_side = 256;
  // For kCropCentre: the size to which both sides are scaled before the centre is cut out, so that the
  // picture's proportions change. If empty, the shorter side is scaled to short_side.
  Size before_crop = {};
  int64_t long_side = 0;  // only for kKeepRatio
  // For kKeepRatio: the shorter side becomes exactly short_side and the longer one is rounded down, as in
  // torchvision's Resize, instead of both being rounded down, as in torchvision's detectors.
  bool exact_short_side = false;
  // For kKeepRatio: the picture is scaled until its height is `height` or its width is `width`, whichever
  // scales it less, and each side is then rounded to the nearest multiple of `multiple`, as in transformers'
  // DPT processor. short_side and exact_short_side have no effect.
  bool either_side = false;
  // For kKeepRatio: every side of a scaled picture is a multiple of this; rounded down without either_side.
  int64_t multiple = 1;
  // For kCropCentre: an odd pixel beside the centre is to the right and below, as in transformers'
  // processors. If false, half a pixel is rounded to the even number, as in torchvision.
  bool crop_rounds_down = false;
  // For kLetterbox: the 8-bit value of the pixels around the picture.
  float fill = 114;
  // If true, downscaling averages over the source pixels of each target pixel; if false, it is bilinear
  // between the nearest pixels, as torchvision's detectors are trained.
  bool antialias = true;
  Interpolation interpolation = Interpolation::kBilinear;
  // Whether a JPEG may be shrunk while it is decoded, which is faster and changes the input: a little with
  // antialias, and more without. Only large JPEGs are shrunk.
  bool reduced_jpeg = true;
  Buckets buckets = {};  // only for kKeepRatio
  std::array<float, 3> mean = {0.485F, 0.456F, 0.406F};
  std::array<float, 3> std = {0.229F, 0.224F, 0.225F};
  bool rgb = true;  // channel order of the tensor; false means BGR

  int64_t channels() const { return medium == Medium::kVolume ? 1 : 3 * views; }
};

// How one item lies in the network's input.
struct Placement {
  Size sent;    // the picture as it was sent, upright
  Size scaled;  // size after scaling: the picture's part of the bucket, from the top left
  Size bucket;  // size after padding
  // Frames of a clip or planes of a volume: as sent, and as the network takes them, with zeros appended. Both
  // are 1 for pictures.
  int64_t sent_depth = 1;
  int64_t depth = 1;
  // Position of the scaled picture in the bucket. Only kLetterbox has other values than 0.
  int64_t top = 0;
  int64_t left = 0;

  friend bool operator==(const Placement&, const Placement&) = default;
};

// The factor by which kLetterbox scales both sides of a picture, before rounding.
double LetterboxFactor(const ImageInput& input, Size sent);

// Whether every input of the network has the size `height` x `width`.
bool IsFixedSize(const ImageInput& input);

// Places a picture. REQUIRES: both sides of `sent` are at least 1. With kKeepRatio no side of `scaled` is
// below input.multiple, and the arithmetic matches torchvision's detection transform to the pixel.
Placement PlacementOf(const ImageInput& input, Size sent);

// Size to which a picture is scaled before its centre is cut out: before_crop, or that of which the shorter
// side is short_side, rounded as torchvision.transforms.Resize does. REQUIRES: input.fit is kCropCentre.
Size SizeBeforeCrop(const ImageInput& input, Size sent);

// Places a clip of `frames` frames, each of size `sent`.
Placement PlacementOfClip(const ImageInput& input, Size sent, int64_t frames);

// Places a volume of `planes` planes, which is neither scaled nor padded.
Placement PlacementOfVolume(Size sent, int64_t planes);

// Short side to which classifiers' pictures are scaled before the centre is cut out: 256 for 224, as is
// usual, and the same ratio for other sizes.
int64_t CropShortSide(int64_t input_size);

// The largest size to which pictures are scaled before they are padded: a listed bucket's, or that of a
// picture that lies down. For kCropCentre the size of every input; empty for volumes, which have any size.
Size LargestInput(const ImageInput& input);

// Placements for warm-up passes: items as large as their bucket, one for each configured bucket size, or else
// one for the bucket of the nominal size.
std::vector<Placement> PlacementsToWarm(const ImageInput& input);

// Parses "stride:32" or "800x1344,1344x800" (height x width). Sides are 1 to 8192, at most 64 sizes. Throws a
// LoadError that says what is legal.
Buckets ParseBuckets(const std::string& architecture, const std::string& text);
// The inverse of ParseBuckets().
std::string AsText(const Buckets& buckets);

}  // namespace saccade::models
