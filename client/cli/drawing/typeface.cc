#include "client/cli/drawing/typeface.h"

#include <ft2build.h>
#include FT_FREETYPE_H

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <type_traits>

#include "client/cli/drawing/font_data.h"

namespace saccade::client {
namespace {

constexpr char32_t kReplacement = 0xFFFD;
// Pixels of a font's size for each pixel of its capitals' height: DejaVu Sans has capitals of 0.729 em.
constexpr double kSizePerCapital = 1 / 0.729;
constexpr char kVariable[] = "SACCADE_FONT";

struct FreeLibrary {
  void operator()(FT_Library library) const { FT_Done_FreeType(library); }
};
struct FreeFace {
  void operator()(FT_Face face) const { FT_Done_Face(face); }
};
using Face = std::unique_ptr<std::remove_pointer_t<FT_Face>, FreeFace>;

// FreeType's objects may be used by one thread at a time, so every thread has its own.
class Typeface {
 public:
  static Typeface& OfThread() {
    thread_local Typeface typeface;
    return typeface;
  }

  // The glyph in its slot, at the size of `height`; rendered if `render`.
  FT_GlyphSlot Load(char32_t character, int height, bool render) {
    FT_Face face = own_.get();
    FT_UInt index = FT_Get_Char_Index(face, character);
    if (index == 0 && other_ != nullptr) {
      const FT_UInt found = FT_Get_Char_Index(other_.get(), character);
      if (found != 0) {
        face = other_.get();
        index = found;
      }
    }
    const auto size = static_cast<FT_UInt>(std::max(1, cvRound(height * kSizePerCapital)));
    if (FT_Set_Pixel_Sizes(face, 0, size) != 0 ||
        FT_Load_Glyph(face, index, render ? FT_LOAD_RENDER : FT_LOAD_DEFAULT) != 0)
      throw TypefaceError("FreeType cannot draw a character of the font");
    return face->glyph;
  }

 private:
  Typeface() {
    FT_Library library = nullptr;
    FT_Face face = nullptr;
    if (FT_Init_FreeType(&library) != 0) throw TypefaceError("FreeType cannot be initialized");
    library_.reset(library);
    const auto font = FontData();
    if (FT_New_Memory_Face(library, font.data(), static_cast<FT_Long>(font.size()), 0, &face) != 0)
      throw TypefaceError("the program's own font cannot be read");
    own_.reset(face);
    const char* const path = std::getenv(kVariable);
    if (path == nullptr || *path == '\0') return;
    if (FT_New_Face(library, path, 0, &face) != 0)
      throw TypefaceError(std::string(kVariable) + " is '" + path +
                          "', which cannot be read as a font; expected a TrueType or OpenType file");
    other_.reset(face);
  }

  std::unique_ptr<std::remove_pointer_t<FT_Library>, FreeLibrary> library_;
  // DejaVu Sans.
  Face own_;
  // Null without SACCADE_FONT.
  Face other_;
};

// The length of the character that begins with `lead`; 0 if none does.
size_t LengthOf(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  return lead >= 0xF0 && lead <= 0xF4 ? 4 : 0;
}

// Blends one glyph into the part of the canvas that it covers.
void Blend(cv::Mat& canvas, const FT_Bitmap& glyph, cv::Point at, const cv::Scalar& color) {
  // A font of bitmaps has pixels of other depths; the fonts that labels need are outlines.
  if (glyph.pixel_mode != FT_PIXEL_MODE_GRAY) return;
  const cv::Rect area = cv::Rect(at.x, at.y, static_cast<int>(glyph.width), static_cast<int>(glyph.rows)) &
                        cv::Rect(0, 0, canvas.cols, canvas.rows);
  for (int y = area.y; y < area.y + area.height; ++y) {
    const unsigned char* const row = glyph.buffer + static_cast<std::ptrdiff_t>(y - at.y) * glyph.pitch;
    for (int x = area.x; x < area.x + area.width; ++x) {
      const double share = row[x - at.x] / 255.0;
      auto& pixel = canvas.at<cv::Vec3b>(y, x);
      for (int channel = 0; channel < 3; ++channel)
        pixel[channel] = cv::saturate_cast<uchar>(share * color[channel] + (1 - share) * pixel[channel]);
    }
  }
}

}  // namespace

std::vector<char32_t> CharactersOf(std::string_view text) {
  std::vector<char32_t> characters;
  for (size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const size_t length = LengthOf(lead);
    char32_t character = length <= 1 ? lead : lead & (0xFF >> (length + 1));
    size_t read = 1;
    for (; read < length && at + read < text.size(); ++read) {
      const auto byte = static_cast<unsigned char>(text[at + read]);
      if ((byte & 0xC0) != 0x80) break;
      character = character << 6 | (byte & 0x3F);
    }
    const bool printable = character >= 0x20 && !(character >= 0x7F && character < 0xA0);
    characters.push_back(length > 0 && read == length && printable ? character : kReplacement);
    at += read;
  }
  return characters;
}

int WidthOfText(const std::vector<char32_t>& text, int height) {
  int width = 0;
  for (const char32_t character : text)
    width += static_cast<int>(Typeface::OfThread().Load(character, height, false)->advance.x >> 6);
  return width;
}

void DrawText(cv::Mat& canvas, const std::vector<char32_t>& text, int height, cv::Point at,
              const cv::Scalar& color) {
  for (const char32_t character : text) {
    const FT_GlyphSlot glyph = Typeface::OfThread().Load(character, height, true);
    Blend(canvas, glyph->bitmap, {at.x + glyph->bitmap_left, at.y - glyph->bitmap_top}, color);
    at.x += static_cast<int>(glyph->advance.x >> 6);
  }
}

}  // namespace saccade::client
