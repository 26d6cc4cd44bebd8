#include "models/programs/error_output.h"

#include <algorithm>
#include <iostream>
#include <streambuf>
#include <string_view>
#include <utility>

namespace saccade::models {
namespace {

constexpr size_t kMaxKept = 4096;

// The innermost of this thread; null if it has none.
thread_local ErrorOutput* kept_by = nullptr;

}  // namespace

// In place of the buffer of std::cerr, which passes on what is not kept.
class ErrorsByThread final : public std::streambuf {
 public:
  // The stream's own buffer, from the first call on behind this one.
  static std::streambuf* Original() {
    // Never destroyed: std::cerr is used until the process ends.
    static const auto* const installed = [] {
      auto* const errors = new ErrorsByThread;
      // First: other threads may write as soon as the buffer is in place.
      errors->original_ = std::cerr.rdbuf();
      std::cerr.rdbuf(errors);
      return errors;
    }();
    return installed->original_;
  }

 protected:
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    if (kept_by == nullptr) return original_->sputn(text, count);
    std::string& kept = kept_by->text_;
    kept.append(text, std::min(static_cast<size_t>(count), kMaxKept - std::min(kMaxKept, kept.size())));
    return count;
  }

  int_type overflow(int_type character) override {
    if (traits_type::eq_int_type(character, traits_type::eof())) return traits_type::not_eof(character);
    const char one = traits_type::to_char_type(character);
    return xsputn(&one, 1) == 1 ? character : traits_type::eof();
  }

  int sync() override { return kept_by == nullptr ? original_->pubsync() : 0; }

 private:
  std::streambuf* original_ = nullptr;
};

ErrorOutput::ErrorOutput() : outer_(kept_by) {
  ErrorsByThread::Original();
  kept_by = this;
}

ErrorOutput::~ErrorOutput() {
  kept_by = outer_;
  if (!text_.empty()) std::cerr << text_ << std::flush;
}

std::string ErrorOutput::Take() {
  std::string text = std::exchange(text_, "");
  text.erase(text.find_last_not_of(" \n") + 1);
  return text;
}

}  // namespace saccade::models
