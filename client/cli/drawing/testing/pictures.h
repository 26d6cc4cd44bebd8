// Helpers for tests: pictures to draw on, and reading of what was drawn.
#pragma once

#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <string>
#include <vector>

namespace saccade::client {

// Encodes the picture; `format` is ".png" or ".jpg".
inline std::string Encoded(const cv::Mat& picture, const std::string& format = ".png") {
  std::vector<uint8_t> bytes;
  cv::imencode(format, picture, bytes);
  return {bytes.begin(), bytes.end()};
}

// A picture of one colour: blue 90, green 120, red 60.
inline cv::Mat PlainPicture(int width, int height) {
  return {height, width, CV_8UC3, cv::Scalar(90, 120, 60)};
}

inline cv::Mat ReadPng(const std::string& path) { return cv::imread(path, cv::IMREAD_UNCHANGED); }

// A filled ellipse, row by row: 255 inside, 0 outside.
inline std::vector<uint8_t> EllipseMask(int width, int height, cv::Point center, cv::Size axes) {
  cv::Mat mask(height, width, CV_8UC1, cv::Scalar(0));
  cv::ellipse(mask, center, axes, 0, 0, 360, cv::Scalar(255), cv::FILLED);
  return {mask.data, mask.data + mask.total()};
}

}  // namespace saccade::client
