#include "models/tasks/merge_tiles.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>

#include "models/tasks/join_detections.h"

namespace saccade::models {
namespace {

// The end of what `tile` contributes along an axis: the picture's end, or the middle of what it shares with
// the next tile.
int64_t SeamAfter(int64_t end, const std::vector<int64_t>& starts, size_t index) {
  return index + 1 == starts.size() ? end : (starts[index + 1] + end) / 2;
}

// The different values of `start` among the tiles, ascending.
template <typename Get>
std::vector<int64_t> Starts(const std::vector<Tile>& tiles, Get get) {
  std::vector<int64_t> starts;
  for (const Tile& tile : tiles) starts.push_back(get(tile));
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  return starts;
}

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
};

// What the tile that starts at `start` contributes along an axis.
Range OwnRange(int64_t start, int64_t length, const std::vector<int64_t>& starts) {
  const auto index =
      static_cast<size_t>(std::lower_bound(starts.begin(), starts.end(), start) - starts.begin());
  const int64_t begin = index == 0 ? 0 : SeamAfter(starts[index - 1] + length, starts, index - 1);
  return {begin, SeamAfter(start + length, starts, index)};
}

Segmentation MergeMaps(const std::vector<TaskResult>& results, const std::vector<Tile>& tiles, Size picture) {
  const std::vector<int64_t> xs = Starts(tiles, [](const Tile& tile) { return tile.x; });
  const std::vector<int64_t> ys = Starts(tiles, [](const Tile& tile) { return tile.y; });
  Segmentation whole{.height = picture.height, .width = picture.width, .labels = {}, .areas = {}};
  whole.labels.resize(static_cast<size_t>(picture.height * picture.width));
  whole.areas.assign(std::get<Segmentation>(results.front()).areas.size(), 0);
  for (size_t i = 0; i < tiles.size(); ++i) {
    const Tile& tile = tiles[i];
    const auto& part = std::get<Segmentation>(results[i]);
    const Range columns = OwnRange(tile.x, tile.width, xs);
    const Range rows = OwnRange(tile.y, tile.height, ys);
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      const uint8_t* from = part.labels.data() + (y - tile.y) * tile.width + (columns.begin - tile.x);
      uint8_t* to = whole.labels.data() + y * picture.width + columns.begin;
      std::memcpy(to, from, static_cast<size_t>(columns.end - columns.begin));
      for (const uint8_t* label = from; label < from + (columns.end - columns.begin); ++label) {
        if (*label < whole.areas.size()) ++whole.areas[*label];
      }
    }
  }
  return whole;
}

}  // namespace

bool CanMergeTiles(Task task) { return task == Task::kDetection || task == Task::kSegmentation; }

TaskResult MergeTiles(std::vector<TaskResult> results, const std::vector<Tile>& tiles, Size picture) {
  if (std::holds_alternative<Segmentation>(results.front())) return MergeMaps(results, tiles, picture);
  std::vector<Detections> parts;
  parts.reserve(results.size());
  for (TaskResult& result : results) parts.push_back(std::get<Detections>(std::move(result)));
  return JoinDetections(std::move(parts), tiles, picture);
}

}  // namespace saccade::models
