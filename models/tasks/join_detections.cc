#include "models/tasks/join_detections.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "models/tasks/stitch_mask.h"

namespace saccade::models {
namespace {

// How well two boxes have to agree within what both tiles show.
constexpr float kSameObject = 0.5F;
// A box that ends at most this many pixels before a border between tiles is taken to be cut by it.
constexpr float kAtBorder = 1.5F;
// How many parts in a neighbouring tile a part is compared with: those that begin nearest to it, along the
// longer side of what both tiles show.
constexpr int kMaxCompared = 64;
// How many of those are candidates to be the same object. One is joined; the others count if that one is
// joined with another part.
constexpr size_t kMaxCandidates = 4;

struct Box {
  float x_min = 0;
  float y_min = 0;
  float x_max = 0;
  float y_max = 0;

  float area() const { return std::max(0.0F, x_max - x_min) * std::max(0.0F, y_max - y_min); }
};

Box Common(const Box& a, const Box& b) {
  return {std::max(a.x_min, b.x_min), std::max(a.y_min, b.y_min), std::min(a.x_max, b.x_max),
          std::min(a.y_max, b.y_max)};
}

Box BoxOf(const Detection& one) { return {one.x_min, one.y_min, one.x_max, one.y_max}; }
Box BoxOf(const Tile& tile) {
  return {static_cast<float>(tile.x), static_cast<float>(tile.y), static_cast<float>(tile.x + tile.width),
          static_cast<float>(tile.y + tile.height)};
}

float OverlapWithin(const Box& seen, const Detection& a, const Detection& b) {
  const Box first = Common(seen, BoxOf(a));
  const Box second = Common(seen, BoxOf(b));
  const float both = Common(first, second).area();
  const float all = first.area() + second.area() - both;
  return all > 0 ? both / all : 0;
}

// A detection in the picture's pixels, and the tile that shows it.
struct Part {
  Detection found;
  size_t tile = 0;
  bool cut = false;
};

bool IsCut(const Detection& one, const Tile& tile, Size picture) {
  const Box box = BoxOf(tile);
  return (tile.x > 0 && one.x_min <= box.x_min + kAtBorder) ||
         (tile.y > 0 && one.y_min <= box.y_min + kAtBorder) ||
         (tile.x + tile.width < picture.width && one.x_max >= box.x_max - kAtBorder) ||
         (tile.y + tile.height < picture.height && one.y_max >= box.y_max - kAtBorder);
}

std::vector<Part> PartsOf(std::vector<Detections> results, const std::vector<Tile>& tiles, Size picture) {
  std::vector<Part> parts;
  for (size_t i = 0; i < tiles.size(); ++i) {
    const auto x = static_cast<float>(tiles[i].x);
    const auto y = static_cast<float>(tiles[i].y);
    for (Detection& one : results[i].items) {
      one.x_min += x;
      one.x_max += x;
      one.y_min += y;
      one.y_max += y;
      one.frame.x += x;
      one.frame.y += y;
      for (Keypoint& point : one.keypoints) point = {point.x + x, point.y + y, point.score};
      const bool cut = IsCut(one, tiles[i], picture);
      parts.push_back({std::move(one), i, cut});
    }
  }
  return parts;
}

struct Pair {
  float overlap = 0;
  size_t first = 0;
  size_t second = 0;
};

// A part's extent along one side of what two tiles show.
struct Extent {
  float begin = 0;
  float end = 0;
  size_t part = 0;
};

// The extents of those of `indices` that both tiles show, along the longer side of `seen`, sorted.
std::vector<Extent> ExtentsOf(const std::vector<Part>& parts, const std::vector<size_t>& indices,
                              const Box& seen) {
  const bool along_x = seen.x_max - seen.x_min > seen.y_max - seen.y_min;
  std::vector<Extent> extents;
  for (const size_t index : indices) {
    const Box shown = Common(seen, BoxOf(parts[index].found));
    if (shown.area() <= 0) continue;
    extents.push_back(along_x ? Extent{shown.x_min, shown.x_max, index}
                              : Extent{shown.y_min, shown.y_max, index});
  }
  std::stable_sort(extents.begin(), extents.end(),
                   [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  return extents;
}

// Adds pairs of `first` with parts of a neighbouring tile, whose extents are `seconds`.
void AddPairs(const std::vector<Part>& parts, const Box& seen, const Extent& first,
              const std::vector<Extent>& seconds, std::vector<Pair>& pairs) {
  const float length = first.end - first.begin;
  // Boxes that agree begin at most the first one's length before it, and half of it behind. A pixel is for
  // rounding. Those that begin nearest come first: the parts of one object begin at about the same place.
  auto after = std::lower_bound(seconds.begin(), seconds.end(), first.begin,
                                [](const Extent& extent, float begin) { return extent.begin < begin; });
  auto before = after;
  std::vector<Pair> candidates;
  for (int compared = 0; compared < kMaxCompared; ++compared) {
    const bool has_before = before != seconds.begin() && std::prev(before)->begin >= first.begin - length - 1;
    const bool has_after = after != seconds.end() && after->begin <= first.begin + length;
    if (!has_before && !has_after) break;
    const bool is_before_nearer =
        has_before && (!has_after || first.begin - std::prev(before)->begin < after->begin - first.begin);
    const Extent& second = is_before_nearer ? *--before : *after++;
    const float overlap = OverlapWithin(seen, parts[first.part].found, parts[second.part].found);
    if (overlap >= kSameObject) candidates.push_back({overlap, first.part, second.part});
  }
  std::sort(candidates.begin(), candidates.end(), [](const Pair& a, const Pair& b) {
    return a.overlap != b.overlap ? a.overlap > b.overlap : a.second < b.second;
  });
  candidates.resize(std::min(candidates.size(), kMaxCandidates));
  pairs.insert(pairs.end(), candidates.begin(), candidates.end());
}

// Pairs of parts that may be of one object: of one class, and in tiles that share pixels.
std::vector<Pair> PairsOf(const std::vector<Part>& parts, const std::vector<Tile>& tiles) {
  // Indices of the parts, by tile and class.
  std::vector<std::map<int64_t, std::vector<size_t>>> of_tile(tiles.size());
  for (size_t i = 0; i < parts.size(); ++i) of_tile[parts[i].tile][parts[i].found.label].push_back(i);
  std::vector<Pair> pairs;
  for (size_t a = 0; a < tiles.size(); ++a) {
    for (size_t b = a + 1; b < tiles.size(); ++b) {
      // Rows of tiles are in order, so no later one shares pixels.
      if (tiles[b].y >= tiles[a].y + tiles[a].height) break;
      const Box seen = Common(BoxOf(tiles[a]), BoxOf(tiles[b]));
      if (seen.x_max <= seen.x_min || seen.y_max <= seen.y_min) continue;
      for (const auto& [label, firsts] : of_tile[a]) {
        const auto seconds = of_tile[b].find(label);
        if (seconds == of_tile[b].end()) continue;
        const std::vector<Extent> extents = ExtentsOf(parts, seconds->second, seen);
        for (const Extent& first : ExtentsOf(parts, firsts, seen))
          AddPairs(parts, seen, first, extents, pairs);
      }
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair& a, const Pair& b) { return a.overlap > b.overlap; });
  return pairs;
}

// Whether two groups have parts of one tile. Groups, like `parts`, are in the order of the tiles.
bool ShareATile(const std::vector<Part>& parts, const std::vector<size_t>& a, const std::vector<size_t>& b) {
  for (auto one = a.begin(), other = b.begin(); one != a.end() && other != b.end();) {
    if (parts[*one].tile == parts[*other].tile) return true;
    ++(*one < *other ? one : other);
  }
  return false;
}

// Groups of parts, each of one object: the best pairs first, and at most one part of each tile.
std::vector<std::vector<size_t>> GroupsOf(const std::vector<Part>& parts, const std::vector<Tile>& tiles) {
  std::vector<size_t> group_of(parts.size());
  std::iota(group_of.begin(), group_of.end(), size_t{0});
  std::vector<std::vector<size_t>> groups(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) groups[i] = {i};
  for (const Pair& pair : PairsOf(parts, tiles)) {
    const size_t into = group_of[pair.first];
    const size_t from = group_of[pair.second];
    if (into == from || ShareATile(parts, groups[into], groups[from])) continue;
    for (const size_t moved : groups[from]) group_of[moved] = into;
    std::vector<size_t> both;
    std::merge(groups[into].begin(), groups[into].end(), groups[from].begin(), groups[from].end(),
               std::back_inserter(both));
    groups[into] = std::move(both);
    groups[from].clear();
  }
  return groups;
}

Detection JoinGroup(std::vector<Part*> group, int64_t mask_side) {
  std::stable_sort(group.begin(), group.end(),
                   [](const Part* a, const Part* b) { return a->found.score > b->found.score; });
  const float score = group.front()->found.score;
  const auto complete = std::find_if(group.begin(), group.end(), [](const Part* part) { return !part->cut; });
  if (complete != group.end()) {
    Detection whole = std::move((*complete)->found);
    whole.score = score;
    if (complete != group.begin() && !group.front()->found.keypoints.empty())
      whole.keypoints = std::move(group.front()->found.keypoints);
    return whole;
  }
  if (group.size() == 1) return std::move(group.front()->found);
  Detection whole = group.front()->found;
  std::vector<const Detection*> pieces;
  for (const Part* part : group) {
    whole.x_min = std::min(whole.x_min, part->found.x_min);
    whole.y_min = std::min(whole.y_min, part->found.y_min);
    whole.x_max = std::max(whole.x_max, part->found.x_max);
    whole.y_max = std::max(whole.y_max, part->found.y_max);
    pieces.push_back(&part->found);
  }
  whole.mask = StitchMask(pieces, whole, mask_side);
  whole.frame = {};
  return whole;
}

}  // namespace

Detections JoinDetections(std::vector<Detections> parts, const std::vector<Tile>& tiles, Size picture) {
  Detections whole{.height = picture.height, .width = picture.width};
  for (const Detections& part : parts) whole.mask_side = std::max(whole.mask_side, part.mask_side);
  std::vector<Part> all = PartsOf(std::move(parts), tiles, picture);
  for (const std::vector<size_t>& group : GroupsOf(all, tiles)) {
    if (group.empty()) continue;
    std::vector<Part*> members;
    members.reserve(group.size());
    for (const size_t index : group) members.push_back(&all[index]);
    whole.items.push_back(JoinGroup(std::move(members), whole.mask_side));
  }
  std::stable_sort(whole.items.begin(), whole.items.end(),
                   [](const Detection& a, const Detection& b) { return a.score > b.score; });
  return whole;
}

}  // namespace saccade::models
