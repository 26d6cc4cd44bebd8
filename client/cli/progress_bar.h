// One line on standard error that grows while a call takes its minutes.
#pragma once

#include <string>

#include "client/cli/console.h"

namespace saccade::client {

class ProgressBar {
 public:
  // `name` stands before the bar. Shows nothing if not `shown`, or where standard error is no terminal.
  ProgressBar(Console& console, const std::string& name, bool shown);

  ~ProgressBar() { Hide(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `what` is under way; `done` of one.
  void Show(const std::string& what, double done);

  // Takes its line away.
  void Hide();

 private:
  Console& console_;
  const std::string name_;
  const bool shown_;
  std::string last_;
};

}  // namespace saccade::client
