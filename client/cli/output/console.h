// The streams of a command and what they can display.
#pragma once

#include <istream>
#include <ostream>
#include <string>

#include "absl/strings/string_view.h"

namespace saccade::client {

struct Console {
  std::istream& in;
  // For data only; everything else goes to err.
  std::ostream& out;
  std::ostream& err;
  // True if out accepts colours: it is a terminal and NO_COLOR is not set.
  bool color = false;
  // True if out accepts more than ASCII.
  bool unicode = false;
  // True if err can be overwritten in place: it is a terminal that out does not share.
  bool progress = false;
  // True if err is a terminal: text there can be erased before out is written.
  bool live = false;
  // True if out is a terminal, whose content can be replaced.
  bool terminal = false;
};

// Returns the process's standard streams. Honours NO_COLOR and the locale.
Console StandardConsole();

// Flushes out. Returns false if the reader has closed the pipe or the disk is full; the command then stops.
// Prints the reason on err, except for a closed pipe, which is how `saccade … | head` ends.
bool Flush(Console& console);

enum class Tone { kStrong, kBar, kFaint };

// Returns `text`, coloured if the console accepts colours.
std::string Paint(const Console& console, Tone tone, absl::string_view text);

// Replaces control characters by '?': labels and file names could otherwise control the terminal.
std::string Printable(absl::string_view text);

// Prints "saccade: message" on err.
void Complain(Console& console, absl::string_view message);

}  // namespace saccade::client
