// Text of any script that the fonts have, rendered by FreeType.
#pragma once

#include <cstdint>
#include <opencv2/core.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace saccade::client {

// The characters of UTF-8 text. What is malformed or not printable becomes U+FFFD.
std::vector<char32_t> CharactersOf(std::string_view text);

// The font of the environment variable SACCADE_FONT cannot be used.
struct TypefaceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Width of the text in pixels, in a font with capitals of `height` pixels. Characters that DejaVu Sans, which
// is part of the program, does not have are taken from the font in SACCADE_FONT, if that is set. Thread-safe.
// Throws a TypefaceError.
int WidthOfText(const std::vector<char32_t>& text, int height);

// Draws the text with its lower left corner at `at`, as far as it is within the canvas, which has three
// channels of 8 bits. Otherwise as WidthOfText.
void DrawText(cv::Mat& canvas, const std::vector<char32_t>& text, int height, cv::Point at,
              const cv::Scalar& color);

}  // namespace saccade::client
