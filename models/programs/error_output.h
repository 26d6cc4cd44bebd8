// What a package writes to std::cerr before it fails: the reason, which its exception lacks.
#pragma once

#include <string>

namespace saccade::models {

// Keeps what this thread writes to std::cerr while the object exists. What other threads write is not
// affected. Objects of one thread are destroyed in reverse order.
class ErrorOutput {
 public:
  ErrorOutput();
  // Writes what was not taken to standard error.
  ~ErrorOutput();
  ErrorOutput(const ErrorOutput&) = delete;
  ErrorOutput& operator=(const ErrorOutput&) = delete;

  // Returns what was kept, at most 4 KiB of it, without the line's end.
  std::string Take();

 private:
  friend class ErrorsByThread;

  std::string text_;
  ErrorOutput* const outer_;
};

}  // namespace saccade::models
