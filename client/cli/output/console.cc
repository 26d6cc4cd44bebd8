#include "client/cli/output/console.h"

#include <langinfo.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "absl/strings/str_cat.h"

namespace saccade::client {
namespace {

bool IsSet(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

Console StandardConsole() {
  std::setlocale(LC_CTYPE, "");
  Console console{std::cin, std::cout, std::cerr};
  const char* term = std::getenv("TERM");
  const bool dumb = term != nullptr && std::strcmp(term, "dumb") == 0;
  const bool out_terminal = isatty(STDOUT_FILENO) == 1;
  console.color = out_terminal && !dumb && !IsSet("NO_COLOR");
  console.unicode = std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
  console.live = isatty(STDERR_FILENO) == 1 && !dumb;
  console.terminal = out_terminal && !dumb;
  console.progress = console.live && !out_terminal;
  return console;
}

bool Flush(Console& console) {
  if (!console.out) return false;
  errno = 0;
  console.out.flush();
  if (console.out) return true;
  if (errno != EPIPE) {
    Complain(console, absl::StrCat("could not write to standard output: ",
                                   errno != 0 ? std::strerror(errno) : "the stream failed"));
  }
  return false;
}

std::string Paint(const Console& console, Tone tone, absl::string_view text) {
  if (!console.color) return std::string(text);
  const char* code = tone == Tone::kStrong ? "\033[1m" : tone == Tone::kBar ? "\033[36m" : "\033[2m";
  return absl::StrCat(code, text, "\033[0m");
}

std::string Printable(absl::string_view text) {
  std::string result(text);
  for (size_t i = 0; i < result.size(); ++i) {
    const auto byte = static_cast<unsigned char>(result[i]);
    // C2 80 to C2 9F are control characters outside ASCII.
    const bool second_half =
        byte == 0xC2 && i + 1 < result.size() && static_cast<unsigned char>(result[i + 1]) < 0xA0;
    if (second_half) result[i] = result[i + 1] = '?';
    if (byte < 0x20 || byte == 0x7F) result[i] = '?';
  }
  return result;
}

void Complain(Console& console, absl::string_view message) {
  console.err << "saccade: " << Printable(message) << std::endl;
}

}  // namespace saccade::client
