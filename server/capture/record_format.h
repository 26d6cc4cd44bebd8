// The bytes of a captured call in a segment.
//
// A segment is kSegmentMagic and then frames. A frame is the length of what follows its head (32 bits,
// little-endian), the CRC-32 of that (the same), and a frame of zstd, which holds one record: the length of
// its JSON (32 bits, little-endian), the JSON, the request and the answer. A segment that was cut anywhere
// loses only the frame that was cut.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "server/capture/capture_settings.h"
#include "server/capture/captured_call.h"

namespace saccade::server {

inline constexpr absl::string_view kSegmentMagic = "saccade capture 1\n";
inline constexpr size_t kFrameHead = 8;

// The JSON that describes the call, on one line; it has hashes instead of bodies unless `pixels` is kFull.
std::string DescribeCall(const CapturedCall& call, CapturedPixels pixels, const std::string& build);

// A whole frame. Empty if it would be larger than a frame's length can say.
std::string MakeFrame(const CapturedCall& call, CapturedPixels pixels, const std::string& build);

}  // namespace saccade::server
