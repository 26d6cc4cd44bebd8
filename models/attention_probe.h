// How those who ask see what attention looks at: layers hand their maps to a probe while a pass runs. No
// LibTorch here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace saccade::models {

// Row by row. What a value means, its layer's kind says: see docs/api.md.
struct AttentionMap {
  std::string name;
  int64_t height = 0;
  int64_t width = 0;
  std::vector<float> values;
};

struct Explanation {
  std::string layer;
  std::vector<AttentionMap> maps;
  // How many the layer has, of which `maps` are the first.
  int64_t available = 0;
};

// Within what the network saw: from 0, its left or top edge, to 1, its right or bottom edge.
struct MapPosition {
  float x = 0.5F;
  float y = 0.5F;
};

// What one item of a batch asks for.
struct ExplanationWish {
  // One of Description::attention_layers.
  std::string layer;
  int64_t most_maps = 1;
  // Whose maps are made, of layers that have some for each position. At least one.
  std::vector<MapPosition> positions = {MapPosition()};
};

// Of one pass. Layers find it as that of the thread they run on; where there is none, they make no maps.
//
// A map is made of its own sample alone, apart from the pass: neither it nor the pass's results depend on
// who else asks.
class AttentionProbe {
 public:
  // One for each item of the batch.
  explicit AttentionProbe(std::vector<std::optional<ExplanationWish>> wishes);

  // Of the calling thread; null if nobody asks.
  static AttentionProbe* Current();

  // Makes it the calling thread's own, until its end.
  class Scope {
   public:
    explicit Scope(AttentionProbe* probe);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    AttentionProbe* const before_;
  };

  // For models that compute items one by one: the samples that layers see begin with this one.
  static void StartAt(size_t item);

  // How many maps of `available`, each of so many values, the sample wants of the layer: 0 if it asks for
  // another. What the maps of a sample hold is bounded, but for the first one.
  int64_t Wanted(const std::string& layer, size_t sample, int64_t available, int64_t values) const;
  // Of a sample that wants maps.
  const std::vector<MapPosition>& PositionsOf(size_t sample) const;
  void Take(size_t sample, Explanation explanation);

  // What came of an item's wish; nothing if it had none, or its layer was not computed.
  std::optional<Explanation> TakeOut(size_t item);

 private:
  const std::vector<std::optional<ExplanationWish>> wishes_;
  std::vector<std::optional<Explanation>> taken_;
  size_t first_ = 0;
};

}  // namespace saccade::models
