// A model's samples: files in its folder that are typical of the inputs of its requests.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/api/placement.h"
#include "server/core/clock.h"
#include "server/engine/item.h"

namespace saccade::server {

struct SampleItems {
  // The files of each item: one, or for a stereo model the left and the right picture.
  std::vector<std::vector<std::string>> items;
  // For a stereo model, the files that are no pictures.
  std::vector<std::string> no_pictures;
};

// Divides files, which are in the order of their names, into items. For a stereo model, left and right
// alternate; the first bytes of each file are read, so that a file that is no picture does not shift the
// pairs behind it. A picture that is broken behind its first bytes keeps its place. INVALID_ARGUMENT if the
// number of pictures is odd. Blocks; thread-safe.
absl::StatusOr<SampleItems> DivideIntoItems(absl::Span<const std::string> files,
                                            const models::ImageInput& input);

// Whether the file's first bytes are those of a picture; false if it cannot be read. Blocks; thread-safe.
bool IsPictureFile(const std::string& path);

// Reads one item as a request with these files would have it: one picture, volume or video, or for a stereo
// model the left and the right picture. INVALID_ARGUMENT names the file. Slow; thread-safe.
absl::StatusOr<Item> ReadSample(absl::Span<const std::string> files, const models::ImageInput& input,
                                Clock* clock);

}  // namespace saccade::server
