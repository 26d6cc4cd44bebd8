// Code shared by all drawings: the decoded picture, text, and a panel below the picture.
#pragma once

#include <functional>
#include <opencv2/core.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cpp/types.h"

namespace saccade::client {

inline const cv::Scalar kPanel(32, 28, 26);
inline const cv::Scalar kLight(245, 245, 245);
inline const cv::Scalar kDark(20, 20, 20);

// Decodes the picture upright and in colour. Fails if its size is not the one that the daemon reports.
absl::StatusOr<cv::Mat> DecodePicture(absl::string_view picture, const Answer& answer);

// Returns the factor by which to enlarge a picture of `size`: 1, or more if it is too small for legible text.
double Enlargement(cv::Size size);

// Returns `picture` with `height` rows of panel below it. If the picture is narrower than the panel must be,
// panel is added on its right, too.
cv::Mat AddPanel(const cv::Mat& picture, int height);

// A font with capitals of `height` pixels, not counting descenders.
class Font {
 public:
  explicit Font(double height);

  int height() const { return height_; }
  int WidthOf(const std::string& text) const;
  // Shortens the text to `width` pixels with dots.
  std::string Fit(const std::string& text, int width) const;
  // Writes the text, which is UTF-8, with its lower left corner at `at`.
  void Write(cv::Mat& canvas, const std::string& text, cv::Point at, const cv::Scalar& color) const;

 private:
  int height_;
};

// "tabby", or "class 281" if the model has no names.
std::string Title(const std::string& label, int64_t index);

// Draws and writes a PNG. OpenCV's exceptions are returned as statuses.
absl::Status SaveDrawing(const std::string& path, const std::function<absl::StatusOr<cv::Mat>()>& draw);

}  // namespace saccade::client
