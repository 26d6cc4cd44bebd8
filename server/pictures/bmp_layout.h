// Where the pixels of a BMP lie, and how each is stored.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace saccade::server {

// The bits of a stored pixel that hold one colour: `bits` of them, from bit `shift` on.
struct BmpChannel {
  unsigned shift = 0;
  unsigned bits = 0;
};

struct BmpLayout {
  int64_t width = 0;
  int64_t height = 0;
  bool is_bottom_up = true;
  // Bits of a pixel: 1, 4 and 8 are places in the palette, 16, 24 and 32 hold colours.
  unsigned depth = 0;
  size_t pixels_at = 0;
  // Rows are filled up to four bytes.
  size_t row_bytes = 0;
  size_t palette_at = 0;
  size_t palette_entry_bytes = 0;
  size_t palette_entries = 0;
  // Blue, green and red of a pixel with 16 or 32 bits.
  std::array<BmpChannel, 3> channels;
};

// INVALID_ARGUMENT, with what was found, if the header is broken or of a kind that is not read, or if rows
// are missing.
absl::StatusOr<BmpLayout> ReadBmpLayout(std::string_view bytes);

}  // namespace saccade::server
