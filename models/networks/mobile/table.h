// The table that MobileNetV2, SANet and KANet share, and the blocks it unfolds to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/networks/mobile/options.h"

namespace saccade::models {

// MobileNetV2's inverted residual; the same with the input kept beside its expansion (SANet's BaseModule,
// KANet's BaseSkipModule); and attention in the place of what is kept (AttnModule).
enum class Module { kPlain, kBase, kAttention };

// One line of table 9 of SANet's paper, table 1 of KANet's and table 2 of MobileNetV2's: `repetitions`
// modules, of which the first has the stride.
struct TableRow {
  bool attention;
  int64_t expansion;
  int64_t channels;
  int64_t repetitions;
  int64_t stride;
};

struct Block {
  std::string name;  // "blocks.N", as its parameters are named
  Module module;
  int64_t expansion;
  int64_t inputs;
  int64_t outputs;
  int64_t stride;
  int64_t size;  // of its input, in pixels a side
  // How many of the maps that it expands to are explicitly modelled attention's.
  int64_t attended = 0;

  // Maps that its 1x1 expansion makes; none when r = 1.
  int64_t expanded() const {
    if (expansion == 1) return 0;
    return (module == Module::kPlain ? expansion : expansion - 1) * inputs;
  }
  // Maps that its depthwise convolution filters: attention takes the place of the c that BaseModule keeps.
  int64_t filtered() const { return module == Module::kAttention ? expanded() : expansion * inputs; }
  bool skip() const { return stride == 1 && inputs == outputs; }
};

// As their parameters are named.
inline std::string AttentionName(const Block& block) { return block.name + ".attention"; }
inline std::string ExpandName(const Block& block) { return block.name + ".expand"; }

struct MobilePlan {
  MobileOptions options;
  int64_t stem = 0;
  std::vector<Block> blocks;
  int64_t head = 0;
};

MobilePlan MakeMobilePlan(const MobileOptions& options);

// A side after a 3x3 convolution padded by one, or a pooling that keeps a rest.
constexpr int64_t Strided(int64_t size, int64_t stride) { return (size - 1) / stride + 1; }

}  // namespace saccade::models
