// A progress bar on standard error.
#pragma once

#include <string>

#include "client/cli/output/console.h"

namespace saccade::client {

class ProgressBar {
 public:
  // `name` is shown before the bar. Shows nothing if `shown` is false or standard error is not a terminal.
  ProgressBar(Console& console, const std::string& name, bool shown);

  ~ProgressBar() { Hide(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Shows the bar. `what` names the current activity; `done` is the finished fraction.
  void Show(const std::string& what, double done);

  // Erases the bar.
  void Hide();

 private:
  Console& console_;
  const std::string name_;
  const bool shown_;
  std::string last_;
};

}  // namespace saccade::client
