#include <algorithm>
#include <cmath>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/drawing/axis.h"
#include "client/cli/drawing/canvas.h"
#include "client/cli/drawing/drawing.h"
#include "client/cli/drawing/palette.h"

namespace saccade::client {
namespace {

constexpr int kWidth = 1200;
constexpr int kPlotMargin = 24;
constexpr int kPlotHeight = 360;  // height of the upper plot
constexpr int kLaneHeight = 34;
constexpr int kMinLeft = 120, kMaxLeft = kWidth / 3;
constexpr int kRight = kWidth - 90;

const cv::Scalar kGridColor(74, 66, 61);
const cv::Scalar kFaintText(160, 150, 145);
const cv::Scalar kAnswerColor(235, 190, 90);
const cv::Scalar kFailureColor(80, 80, 235);
// P50, p90, p99.
const cv::Scalar kPercentileColors[] = {{235, 190, 90}, {170, 130, 60}, {110, 85, 45}};

double MaxLatency(const LoadDrawing& load) {
  double max = 0;
  for (const LoadDrawing::Point& point : load.points) max = std::max(max, point.milliseconds);
  return max > 0 && std::isfinite(max) ? max : 1;
}

class LoadPlot {
 public:
  explicit LoadPlot(const LoadDrawing& load) : load_(load), font_(13), max_(1.05 * MaxLatency(load)) {
    for (const LoadDrawing::Point& point : load.points) seconds_ = std::max(seconds_, point.seconds);
    for (const LoadDrawing::Stage& stage : load.stages) max_p99_ = std::max(max_p99_, stage.p99);
    // The axis begins where the longest name ends.
    for (const LoadDrawing::Stage& stage : load.stages)
      left_ = std::clamp(font_.WidthOf(stage.name) + 2 * kPlotMargin, left_, kMaxLeft);
    const int stages = static_cast<int>(load.stages.size());
    lanes_top_ = top_ + kPlotHeight + 90;
    canvas_ = cv::Mat(lanes_top_ + stages * kLaneHeight + 60, kWidth, CV_8UC3, kPanel);
  }

  cv::Mat Draw() {
    font_.Write(canvas_, font_.Fit(load_.title, kWidth - 2 * kPlotMargin),
                {kPlotMargin, kPlotMargin + font_.height()}, kLight);
    DrawPoints();
    DrawStages();
    return canvas_;
  }

 private:
  int XOf(double value, double max) const {
    return left_ + cvRound(std::clamp(value / max, 0.0, 1.0) * (kRight - left_));
  }
  int YOf(double milliseconds) const {
    return top_ + kPlotHeight - cvRound(std::clamp(milliseconds / max_, 0.0, 1.0) * kPlotHeight);
  }

  void DrawPoints() {
    ForTicks(0, max_, 6, [&](double at, const std::string& text) {
      cv::line(canvas_, {left_, YOf(at)}, {kRight, YOf(at)}, kGridColor, 1);
      font_.Write(canvas_, text, {left_ - 10 - font_.WidthOf(text), YOf(at) + font_.height() / 2},
                  kFaintText);
    });
    const int bottom = top_ + kPlotHeight;
    ForTicks(0, seconds_, 10, [&](double at, const std::string& text) {
      const int x = XOf(at, seconds_);
      cv::line(canvas_, {x, top_}, {x, bottom + 5}, kGridColor, 1);
      font_.Write(canvas_, text, {x - font_.WidthOf(text) / 2, bottom + 12 + font_.height()}, kFaintText);
    });
    // Failures are drawn above the answered requests.
    for (const bool answered : {true, false}) {
      for (const LoadDrawing::Point& point : load_.points) {
        if (point.answered != answered) continue;
        cv::circle(canvas_, {XOf(point.seconds, seconds_), YOf(point.milliseconds)}, 2,
                   answered ? kAnswerColor : kFailureColor, cv::FILLED, cv::LINE_AA);
      }
    }
    const int y = top_ - 12;
    Legend({{"answered", kAnswerColor}, {"failed", kFailureColor}}, y);
    font_.Write(canvas_, "latency in milliseconds over the time at which the request was due", {left_, y},
                kFaintText);
  }

  void DrawStages() {
    const int y = lanes_top_ - 12;
    Legend({{"p50", kPercentileColors[0]}, {"p90", kPercentileColors[1]}, {"p99", kPercentileColors[2]}}, y);
    font_.Write(canvas_, "milliseconds by stage", {left_, y}, kFaintText);
    const int bottom = lanes_top_ + static_cast<int>(load_.stages.size()) * kLaneHeight;
    ForTicks(0, max_p99_, 10, [&](double at, const std::string& text) {
      const int x = XOf(at, max_p99_);
      cv::line(canvas_, {x, lanes_top_}, {x, bottom + 5}, kGridColor, 1);
      font_.Write(canvas_, text, {x - font_.WidthOf(text) / 2, bottom + 12 + font_.height()}, kFaintText);
    });
    for (size_t i = 0; i < load_.stages.size(); ++i) {
      const LoadDrawing::Stage& stage = load_.stages[i];
      const int top = lanes_top_ + static_cast<int>(i) * kLaneHeight;
      const int base = top + (kLaneHeight + font_.height()) / 2;
      font_.Write(canvas_, font_.Fit(stage.name, left_ - 2 * kPlotMargin), {kPlotMargin, base}, kLight);
      const double shares[] = {stage.p50, stage.p90, stage.p99};
      for (int share = 2; share >= 0; --share) {
        const int to = std::max(left_ + 1, XOf(shares[share], max_p99_));
        cv::rectangle(canvas_, cv::Rect(left_, top + 5, to - left_, kLaneHeight - 10),
                      kPercentileColors[share], cv::FILLED);
      }
      font_.Write(canvas_, absl::StrFormat("%.1f", stage.p99), {XOf(stage.p99, max_p99_) + 8, base},
                  kFaintText);
    }
  }

  // The legend is right-aligned.
  void Legend(const std::vector<std::pair<std::string, cv::Scalar>>& entries, int y) {
    int x = kRight;
    for (size_t i = entries.size(); i-- > 0;) {
      x -= font_.WidthOf(entries[i].first);
      font_.Write(canvas_, entries[i].first, {x, y}, kFaintText);
      x -= 20;
      cv::rectangle(canvas_, cv::Rect(x, y - font_.height(), 12, font_.height()), entries[i].second,
                    cv::FILLED);
      x -= 16;
    }
  }

  const LoadDrawing& load_;
  const Font font_;
  const double max_;
  double seconds_ = 1e-3;
  double max_p99_ = 1e-3;
  int left_ = kMinLeft;
  const int top_ = 90;
  int lanes_top_ = 0;
  cv::Mat canvas_;
};

}  // namespace

absl::Status DrawLoad(const LoadDrawing& load, const std::string& path) {
  return SaveDrawing(path, [&]() -> absl::StatusOr<cv::Mat> { return LoadPlot(load).Draw(); });
}

}  // namespace saccade::client
