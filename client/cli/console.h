// Where a command reads and writes, and what that place can show.
#pragma once

#include <istream>
#include <ostream>
#include <string>

#include "absl/strings/string_view.h"

namespace saccade::client {

struct Console {
  std::istream& in;
  // Data only; everything else goes to err.
  std::ostream& out;
  std::ostream& err;
  // Whether out takes colours: a terminal, and nobody asked for none.
  bool color = false;
  // Whether out takes more than ASCII.
  bool unicode = false;
  // Whether err may be overwritten in place: a terminal that out does not share.
  bool progress = false;
  // Whether err is a terminal: what is written there may be taken away again before out is written to.
  bool live = false;
  // Whether out is a terminal, and what is on it may be replaced.
  bool terminal = false;
};

// The program's own standard streams. Honours NO_COLOR and the locale.
Console StandardConsole();

// False once the reader is gone or the disk is full; the command then stops. Says why on err, except for a
// reader that went away, which is how `saccade … | head` ends.
bool Flush(Console& console);

enum class Tone { kStrong, kBar, kFaint };

// `text` in colour if the console takes it.
std::string Paint(const Console& console, Tone tone, absl::string_view text);

// Without what could steer a terminal: labels and file names are not ours.
std::string Printable(absl::string_view text);

// "saccade: message" on err.
void Complain(Console& console, absl::string_view message);

}  // namespace saccade::client
