// Process-wide OpenCV setup, and conversion of its exceptions to statuses.
#pragma once

#include <exception>
#include <new>
#include <opencv2/core.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/core/retry_hint.h"

namespace saccade::server {

// Changes process-wide settings. Call it before any other use of OpenCV; only the first call has an effect.
inline void SetUpOpenCv() {
  static const bool once = [] {
    // The decode pool provides the parallelism, so OpenCV must not start threads of its own.
    cv::setNumThreads(0);
    // Errors are returned to the client; by default OpenCV would also print each of them.
    cv::redirectError([](int, const char*, const char*, const char*, int, void*) { return 0; });
    return true;
  }();
  static_cast<void>(once);
}

// Returns the result of `work`, or its exception as a status. `what` is the subject of the message ("the
// picture").
template <typename Work>
auto CatchExceptions(const char* what, const Work& work) -> decltype(work()) {
  const auto out_of_memory = [what] {
    return OutOfMemory(
        absl::StrCat("out of memory while decoding ", what, "; try again later or send a smaller one"));
  };
  try {
    return work();
  } catch (const cv::Exception& error) {
    if (error.code == cv::Error::StsNoMem) return out_of_memory();
    return absl::InvalidArgumentError(absl::StrCat(what, " cannot be decoded: ", error.err));
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(what, " cannot be decoded: ", error.what()));
  }
}

}  // namespace saccade::server
