// DejaVu Sans as Debian's package fonts-dejavu-core has it; part of the program, so that labels look alike
// everywhere. Its licence is in LICENSE.fonts.
#pragma once

#include <span>

namespace saccade::client {

// The bytes of the TrueType file.
std::span<const unsigned char> FontData();

}  // namespace saccade::client
