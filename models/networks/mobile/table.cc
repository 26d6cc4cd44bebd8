#include "models/networks/mobile/table.h"

#include <algorithm>
#include <cmath>

#include "models/networks/width.h"

namespace saccade::models {
namespace {

constexpr int64_t kStemChannels = 32;
constexpr int64_t kHeadChannels = 1280;
constexpr TableRow kRows[] = {
    // attention, r, c, n, s
    {false, 1, 16, 1, 1}, {false, 6, 24, 2, 2}, {false, 6, 32, 2, 2}, {true, 6, 32, 1, 1},
    {false, 6, 64, 1, 2}, {true, 6, 64, 3, 1},  {true, 6, 96, 3, 1},  {false, 6, 160, 1, 2},
    {true, 6, 160, 2, 1}, {true, 6, 320, 1, 1},
};

Module ModuleOf(const TableRow& row, const MobileOptions& options) {
  const bool attends = options.attention != MobileAttention::kNone;
  if (row.attention && attends) return Module::kAttention;
  if (row.attention && options.plain_without_attention) return Module::kPlain;
  return options.keeps_input ? Module::kBase : Module::kPlain;
}

// Explicit attention makes about a twentieth of the expanded maps, a multiple of its four heads, in blocks
// with at least 24 (times width) inputs.
int64_t Attended(const Block& block, const MobileOptions& options) {
  if (options.map.empty() || block.inputs < Scaled(24, options.width) || block.expanded() == 0) return 0;
  return std::max<int64_t>(4, 4 * std::lround(static_cast<double>(block.expanded()) / 80));
}

}  // namespace

MobilePlan MakeMobilePlan(const MobileOptions& options) {
  MobilePlan plan{options, Scaled(kStemChannels, options.width), {}, Scaled(kHeadChannels, options.width)};
  int64_t channels = plan.stem;
  int64_t size = Strided(options.input_size, 2);
  for (const TableRow& row : kRows) {
    for (int64_t repetition = 0; repetition < row.repetitions; ++repetition) {
      Block block{.name = "blocks." + std::to_string(plan.blocks.size()),
                  .module = ModuleOf(row, options),
                  .expansion = row.expansion,
                  .inputs = channels,
                  .outputs = Scaled(row.channels, options.width),
                  .stride = repetition == 0 ? row.stride : 1,
                  .size = size};
      block.attended = Attended(block, options);
      plan.blocks.push_back(block);
      channels = block.outputs;
      size = Strided(size, block.stride);
    }
  }
  return plan;
}

}  // namespace saccade::models
