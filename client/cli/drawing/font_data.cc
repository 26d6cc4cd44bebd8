#include "client/cli/drawing/font_data.h"

#include <cstddef>

// The assembler copies the file: a table of 750,000 numbers would take the compiler long.
asm(".section .rodata\n"
    ".balign 16\n"
    ".global saccade_font_data\n"
    "saccade_font_data:\n"
    ".incbin \"" SACCADE_FONT_FILE
    "\"\n"
    ".global saccade_font_data_end\n"
    "saccade_font_data_end:\n"
    ".byte 0\n"
    ".previous\n");

extern "C" const unsigned char saccade_font_data[];
extern "C" const unsigned char saccade_font_data_end[];

namespace saccade::client {

std::span<const unsigned char> FontData() {
  return {saccade_font_data, static_cast<size_t>(saccade_font_data_end - saccade_font_data)};
}

}  // namespace saccade::client
