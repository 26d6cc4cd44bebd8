// How long a forward pass takes by its batch size: a running estimate for one bucket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace saccade::server {

// A line through a few sizes, the knots, each pass drawing those beside it towards itself: a pass of its own
// size tells of its neighbours too, and one that was quick by chance does not make its size look cheap. Times
// are in nanoseconds. Not thread-safe.
class LatencyModel {
 public:
  explicit LatencyModel(int64_t max_size);

  // A pass over `size` items took `took`. REQUIRES: 1 <= size <= max_size, took > 0.
  void Learn(int64_t size, double took);

  // Nothing has been computed for a while, because of what is thought here: thinks a little better of it.
  // Otherwise who is refused for a slow spell is refused for ever. Returns false, and does nothing, if a pass
  // was never near `time`.
  bool Doubt(double time);

  bool known() const { return first_ > 0; }

  // 0 while nothing is known.
  double Mean(int64_t size) const { return mean_[size]; }
  // What few passes exceed: the mean and three standard deviations.
  double Upper(int64_t size) const { return mean_[size] * margin_; }

  // The largest size, at most `most`, whose Upper is within `time`; 0 if none is.
  int64_t LargestWithin(double time, int64_t most) const;

  // A pass is taken to cost fixed() + size * each().
  double fixed() const { return fixed_; }
  double each() const { return each_; }

 private:
  struct Knot {
    int64_t size = 0;
    double mean = 0;
    double passes = 0;
  };

  // The knots on both sides of a size, which may be one, and how near the upper one is, from 0 to 1.
  struct Neighbours {
    Knot* below = nullptr;
    Knot* above = nullptr;
    double nearness = 1;

    double mean() const { return below->mean + nearness * (above->mean - below->mean); }
  };

  Neighbours Around(int64_t size);
  // What is expected of the size between them becomes about so many times as much: most of it for all sizes.
  void Move(const Neighbours& knots, double factor);
  void Draw(int64_t size, double took);
  void Extend(int64_t size, double took);
  void Fill();

  // Ascending, from 1 to the largest size.
  std::vector<Knot> knots_;
  // How the machine does now, against the knots: all sizes become slower together.
  double scale_ = 1;
  // By size, scaled.
  std::vector<double> mean_;
  // The sizes between which passes were seen.
  int64_t first_ = 0;
  int64_t last_ = 0;
  // Of a pass's time to its size's mean, over all sizes.
  double relative_variance_;
  double passes_ = 0;
  double margin_;
  // What is left of the mean after all doubts since the last pass.
  double doubt_ = 1;
  double fixed_ = 0;
  double each_ = 0;
};

}  // namespace saccade::server
