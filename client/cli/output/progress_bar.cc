#include "client/cli/output/progress_bar.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/output/bar.h"

namespace saccade::client {
namespace {

constexpr int kProgressBarWidth = 24;
// Moves to the beginning of the line and erases it.
constexpr char kClear[] = "\r\033[K";

}  // namespace

ProgressBar::ProgressBar(Console& console, const std::string& name, bool shown)
    : console_(console), name_(Printable(name)), shown_(shown && console.live) {}

void ProgressBar::Show(const std::string& what, double done) {
  if (!shown_) return;
  const std::string line = absl::StrCat(name_, "  ", what, absl::StrFormat(" %3.0f%%  ", 100 * done),
                                        Bar(done, kProgressBarWidth, console_.unicode));
  // Skips equal lines: a terminal is slow, and a large volume is sent in thousands of parts.
  if (line == last_) return;
  last_ = line;
  console_.err << kClear << line << std::flush;
}

void ProgressBar::Hide() {
  if (!last_.empty()) console_.err << kClear << std::flush;
  last_.clear();
}

}  // namespace saccade::client
