// The table shared by MobileNetV2, SANet and KANet, and the blocks made from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/networks/mobile/options.h"

namespace saccade::models {

// kPlain is MobileNetV2's inverted residual; kBase also keeps the input beside its expansion (SANet's
// BaseModule, KANet's BaseSkipModule); kAttention has attention instead of the kept input (AttnModule).
enum class Module { kPlain, kBase, kAttention };

// One line of table 9 of SANet's paper, table 1 of KANet's and table 2 of MobileNetV2's: `repetitions`
// modules, the first of which has the stride.
struct TableRow {
  bool attention;
  int64_t expansion;
  int64_t channels;
  int64_t repetitions;
  int64_t stride;
};

struct Block {
  std::string name;  // "blocks.N", the prefix of its parameters
  Module module;
  int64_t expansion;
  int64_t inputs;
  int64_t outputs;
  int64_t stride;
  int64_t size;  // side of its input in pixels
  // Number of its expanded maps that are made by explicit attention.
  int64_t attended = 0;

  // Number of maps made by the 1x1 expansion; 0 if r = 1.
  int64_t expanded() const {
    if (expansion == 1) return 0;
    return (module == Module::kPlain ? expansion : expansion - 1) * inputs;
  }
  // Number of maps that the depthwise convolution filters; with attention, without the c that BaseModule
  // keeps.
  int64_t filtered() const { return module == Module::kAttention ? expanded() : expansion * inputs; }
  bool skip() const { return stride == 1 && inputs == outputs; }
};

// Names that prefix the parameters.
inline std::string AttentionName(const Block& block) { return block.name + ".attention"; }
inline std::string ExpandName(const Block& block) { return block.name + ".expand"; }

struct MobilePlan {
  MobileOptions options;
  int64_t stem = 0;
  std::vector<Block> blocks;
  int64_t head = 0;
};

MobilePlan MakeMobilePlan(const MobileOptions& options);

// Returns a side after a 3x3 convolution padded by one, or after a pooling that counts incomplete windows.
constexpr int64_t Strided(int64_t size, int64_t stride) { return (size - 1) / stride + 1; }

}  // namespace saccade::models
