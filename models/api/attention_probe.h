// Makes attention maps visible to clients: layers hand their maps to an AttentionProbe during a forward pass.
// Does not include LibTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace saccade::models {

// One map, row by row. The meaning of its values depends on the kind of layer: see docs/api.md.
struct AttentionMap {
  std::string name;
  int64_t height = 0;
  int64_t width = 0;
  std::vector<float> values;
};

struct Explanation {
  std::string layer;
  std::vector<AttentionMap> maps;
  // Number of maps that the layer has; `maps` holds the first of them.
  int64_t available = 0;
};

// A position within the network's input: from 0, the left or top edge, to 1, the right or bottom edge.
struct MapPosition {
  float x = 0.5F;
  float y = 0.5F;
};

// The attention maps that one item of a batch asks for.
struct ExplanationWish {
  // One of Description::attention_layers.
  std::string layer;
  int64_t max_maps = 1;
  // Positions for which maps are made, for layers that have maps for each position. Not empty.
  std::vector<MapPosition> positions = {MapPosition()};
};

// Collects the attention maps of one forward pass. Layers find it as the probe of the thread they run on;
// without one they make no maps.
//
// A map is computed from its own sample alone, apart from the pass: neither the map nor the results of the
// pass depend on which other samples have maps made.
class AttentionProbe {
 public:
  // `wishes` has one entry per item of the batch; nullopt for an item that asks for no maps.
  explicit AttentionProbe(std::vector<std::optional<ExplanationWish>> wishes);

  // Returns the probe of the calling thread, or null if there is none.
  static AttentionProbe* Current();

  // Makes `probe` the calling thread's probe for the lifetime of the Scope, then restores the previous one.
  class Scope {
   public:
    explicit Scope(AttentionProbe* probe);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    AttentionProbe* const before_;
  };

  // For models that compute items one by one: sets the item to which the layers' first sample belongs. Does
  // nothing if the calling thread has no probe.
  static void StartAt(size_t item);

  // Returns how many of the layer's `available` maps, each of `values` values, to make for the sample: 0 if
  // the sample asks for no maps or for another layer. Maps after the first are limited by a bound on the
  // sample's total values.
  int64_t Wanted(const std::string& layer, size_t sample, int64_t available, int64_t values) const;
  // REQUIRES: Wanted() returned more than 0 for the sample.
  const std::vector<MapPosition>& PositionsOf(size_t sample) const;
  void Take(size_t sample, Explanation explanation);

  // Returns and removes an item's explanation; nullopt if it asked for none, or if its layer was not
  // computed.
  std::optional<Explanation> TakeOut(size_t item);

 private:
  const std::vector<std::optional<ExplanationWish>> wishes_;
  std::vector<std::optional<Explanation>> taken_;
  size_t first_ = 0;
};

}  // namespace saccade::models
