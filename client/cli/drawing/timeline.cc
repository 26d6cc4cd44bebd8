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
constexpr const char* kAxisTitle = "seconds";
constexpr int kLaneHeight = 40;
constexpr int kMargin = 20;
constexpr int kAxisHeight = 48;
// More lanes would make the picture too large to read.
constexpr size_t kMaxLanes = 30;
constexpr size_t kMaxRowsPerLane = 6;
constexpr int kMaxTitleWidth = kWidth / 3;

const cv::Scalar kTrack(48, 42, 39);
const cv::Scalar kGrid(74, 66, 61);

struct Lane {
  std::string title;
  cv::Scalar color;
  // Best score first.
  std::vector<Action> actions = {};
  // The row of each action within the lane: actions that overlap are in different rows.
  std::vector<int> rows = {};
  int height = 1;
};

// Puts each action, the best first, into the first row in which it overlaps no other one. The last row takes
// what has no room.
void SetRows(Lane& lane) {
  std::vector<std::vector<const Action*>> rows;
  for (const Action& action : lane.actions) {
    const auto overlaps = [&](const Action* other) {
      return action.start_seconds < other->end_seconds && other->start_seconds < action.end_seconds;
    };
    const auto free = [&](const auto& row) { return std::none_of(row.begin(), row.end(), overlaps); };
    auto row = std::find_if(rows.begin(), rows.end(), free);
    if (row == rows.end() && rows.size() < kMaxRowsPerLane) row = rows.emplace(rows.end());
    if (row == rows.end()) --row;
    row->push_back(&action);
    lane.rows.push_back(static_cast<int>(row - rows.begin()));
  }
  lane.height = std::max(1, static_cast<int>(rows.size()));
}

std::vector<Lane> LanesOf(const Actions& answer) {
  std::vector<int64_t> classes;
  std::vector<Lane> lanes;
  for (const Action& action : answer.items) {
    const auto found = std::find(classes.begin(), classes.end(), action.class_index);
    const size_t at = found - classes.begin();
    if (found == classes.end()) {
      classes.push_back(action.class_index);
      lanes.push_back({Title(action.label, action.class_index), BrightColor(action.class_index)});
    }
    lanes[at].actions.push_back(action);
  }
  if (lanes.empty()) lanes.push_back({"nothing found", kLight});
  if (lanes.size() > kMaxLanes) {
    const size_t left_out = lanes.size() - kMaxLanes + 1;
    lanes.resize(kMaxLanes);
    lanes.back() = {absl::StrCat("and ", left_out, " more"), kLight};
  }
  for (Lane& lane : lanes) SetRows(lane);
  return lanes;
}

// Returns the clip's length, or more if the actions need it; never zero.
double SecondsOf(const Actions& answer) {
  double seconds = answer.frames_per_second > 0 ? answer.frames / answer.frames_per_second : 0;
  for (const Action& action : answer.items) {
    if (std::isfinite(action.end_seconds)) seconds = std::max(seconds, action.end_seconds);
  }
  return std::isfinite(seconds) && seconds > 1e-3 ? seconds : 1;
}

class Drawing {
 public:
  explicit Drawing(const Actions& answer)
      : lanes_(LanesOf(answer)), seconds_(SecondsOf(answer)), font_(kLaneHeight * 0.36) {
    // The axis's title, and half of the label at its beginning.
    int titles = font_.WidthOf(kAxisTitle) + font_.WidthOf("0.00") / 2;
    int rows = 0;
    for (Lane& lane : lanes_) {
      tops_.push_back(kMargin + rows * kLaneHeight);
      rows += lane.height;
      lane.title = font_.Fit(lane.title, kMaxTitleWidth);
      titles = std::max(titles, font_.WidthOf(lane.title));
    }
    left_ = 2 * kMargin + titles;
    right_ = kWidth - 2 * kMargin;
    bottom_ = kMargin + rows * kLaneHeight;
    canvas_ = cv::Mat(bottom_ + kAxisHeight, kWidth, CV_8UC3, kPanel);
  }

  cv::Mat Draw() {
    for (size_t i = 0; i < lanes_.size(); ++i) {
      const cv::Rect track(left_, tops_[i] + 3, right_ - left_, lanes_[i].height * kLaneHeight - 6);
      cv::rectangle(canvas_, track, kTrack, cv::FILLED);
    }
    DrawAxis();
    for (size_t i = 0; i < lanes_.size(); ++i) DrawLane(lanes_[i], tops_[i]);
    return canvas_;
  }

 private:
  // The comparison maps NaN to the beginning.
  int XOf(double seconds) const {
    const double share = seconds > 0 ? std::min(seconds / seconds_, 1.0) : 0;
    return left_ + cvRound(share * (right_ - left_));
  }

  void DrawAxis() {
    const int y = bottom_ + 10 + font_.height();
    ForTicks(0, seconds_, 10, [&](double at, const std::string& text) {
      const int x = XOf(at);
      cv::line(canvas_, {x, kMargin}, {x, bottom_ + 5}, kGrid, 1);
      font_.Write(canvas_, text, {x - font_.WidthOf(text) / 2, y}, kLight);
    });
    font_.Write(canvas_, kAxisTitle, {kMargin, y}, kLight);
  }

  // The best actions are drawn last, above the others, but their scores are placed first.
  void DrawLane(const Lane& lane, int top) {
    const int base = top + (kLaneHeight + font_.height()) / 2;
    font_.Write(canvas_, lane.title, {kMargin, base}, kLight);
    std::vector<cv::Rect> bars;
    for (size_t i = 0; i < lane.actions.size(); ++i) {
      const Action& action = lane.actions[i];
      const int from = XOf(action.start_seconds);
      bars.emplace_back(from, top + lane.rows[i] * kLaneHeight + 5,
                        std::max(3, XOf(action.end_seconds) - from), kLaneHeight - 10);
    }
    for (size_t i = bars.size(); i-- > 0;) {
      cv::rectangle(canvas_, bars[i], lane.color, cv::FILLED);
      cv::rectangle(canvas_, bars[i], kDark, 1);
    }
    std::vector<cv::Rect> taken;
    for (size_t i = 0; i < bars.size(); ++i) {
      WriteScore(absl::StrFormat("%.0f%%", 100 * lane.actions[i].score), bars, i, lane.color, taken);
    }
  }

  // Writes the score in its bar, or beside it if nothing is there; omits it if there is no room.
  void WriteScore(const std::string& text, const std::vector<cv::Rect>& bars, size_t of,
                  const cv::Scalar& color, std::vector<cv::Rect>& taken) {
    constexpr int kInset = 6;
    const cv::Rect& bar = bars[of];
    const cv::Size size(font_.WidthOf(text) + 2 * kInset, bar.height);
    const cv::Rect inside(bar.tl(), size), after({bar.x + bar.width, bar.y}, size),
        before({bar.x - size.width, bar.y}, size);
    for (const cv::Rect& place : {inside, after, before}) {
      const auto meets = [&](const cv::Rect& other) { return (other & place).area() > 0; };
      const bool in_bar = place.x == bar.x;
      if (in_bar ? place.width > bar.width : std::any_of(bars.begin(), bars.end(), meets)) continue;
      // The bar of a better action may cover this one.
      if (in_bar && std::any_of(bars.begin(), bars.begin() + static_cast<std::ptrdiff_t>(of), meets))
        continue;
      if (place.x < left_ || place.x + place.width > kWidth) continue;
      if (std::any_of(taken.begin(), taken.end(), meets)) continue;
      const int base = place.y + (place.height + font_.height()) / 2;
      font_.Write(canvas_, text, {place.x + kInset, base}, in_bar ? TextColorOn(color) : kLight);
      taken.push_back(place);
      return;
    }
  }

  std::vector<Lane> lanes_;
  // By lane, in pixels.
  std::vector<int> tops_;
  const double seconds_;
  const Font font_;
  int left_ = 0;
  int right_ = 0;
  int bottom_ = 0;
  cv::Mat canvas_;
};

}  // namespace

absl::Status DrawTimeline(const Actions& answer, const std::string& path) {
  return SaveDrawing(path, [&]() -> absl::StatusOr<cv::Mat> { return Drawing(answer).Draw(); });
}

}  // namespace saccade::client
