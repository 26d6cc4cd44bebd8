// What all drawings share: the picture as the daemon saw it, text that can be read, a panel below.
#pragma once

#include <functional>
#include <opencv2/core.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/types.h"

namespace saccade::client {

inline const cv::Scalar kPanel(32, 28, 26);
inline const cv::Scalar kLight(245, 245, 245);
inline const cv::Scalar kDark(20, 20, 20);

// Upright, in colour; refused if it has not the size that the daemon tells.
absl::StatusOr<cv::Mat> DecodePicture(absl::string_view picture, const Answer& answer);

// As whole pixels, times `factor`; the factor is 1 but for small pictures, where text needs room to be read.
double Enlargement(cv::Size size);

// `picture`, and `height` rows of panel below it. Where the picture is narrower than the panel needs, it is
// left of more panel.
cv::Mat AddPanel(const cv::Mat& picture, int height);

// Of text `height` pixels high, capitals without descenders.
class Font {
 public:
  explicit Font(double height);

  int height() const { return height_; }
  int WidthOf(const std::string& text) const;
  // ASCII alone, which is all that the font knows, and cut to `width` with dots.
  std::string Fit(const std::string& text, int width) const;
  // From its lower left corner.
  void Write(cv::Mat& canvas, const std::string& text, cv::Point at, const cv::Scalar& color) const;

 private:
  int height_;
  double scale_;
  int thickness_;
};

// "tabby", or "class 281" where the model has no names.
std::string Title(const std::string& label, int64_t index);

// Draws and writes; an exception of OpenCV's becomes a status.
absl::Status SaveDrawing(const std::string& path, const std::function<absl::StatusOr<cv::Mat>()>& draw);

}  // namespace saccade::client
