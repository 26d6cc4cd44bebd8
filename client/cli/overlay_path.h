// What an overlay's file is called.
#pragma once

#include <string>
#include <vector>

namespace saccade::client {

// DIR/STEM.overlay.png for each picture, DIR/STEM-2.overlay.png and so on for those that share a stem; "-" is
// called stdin. The suffix keeps an overlay from replacing the picture it shows.
std::vector<std::string> OverlayPaths(const std::string& directory, const std::vector<std::string>& pictures);

}  // namespace saccade::client
