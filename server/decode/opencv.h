// OpenCV as this room uses it: set up once, and its exceptions become answers.
#pragma once

#include <exception>
#include <new>
#include <opencv2/core.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace saccade::server {

// Process-wide settings, made before the first use here.
inline void SetUpOpenCv() {
  static const bool once = [] {
    // The pool's threads are all there should be.
    cv::setNumThreads(0);
    // Errors are answered to the client; by default OpenCV would print each of them as well.
    cv::redirectError([](int, const char*, const char*, const char*, int, void*) { return 0; });
    return true;
  }();
  static_cast<void>(once);
}

// What `work` returns, or throws, as its answer; `what` is it about ("the picture").
template <typename Work>
auto Answered(const char* what, const Work& work) -> decltype(work()) {
  const auto out_of_memory = [what] {
    return absl::ResourceExhaustedError(
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
