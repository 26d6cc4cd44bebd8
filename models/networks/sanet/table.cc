#include "models/networks/sanet/table.h"

namespace saccade::models {
namespace {

constexpr int64_t kStem = 32;
constexpr int64_t kHead = 1280;
constexpr TableRow kRows[] = {
    // module, r, c, n, s
    {Module::kBase, 1, 16, 1, 1},       {Module::kBase, 6, 24, 2, 2},  {Module::kBase, 6, 32, 2, 2},
    {Module::kAttention, 6, 32, 1, 1},  {Module::kBase, 6, 64, 1, 2},  {Module::kAttention, 6, 64, 3, 1},
    {Module::kAttention, 6, 96, 3, 1},  {Module::kBase, 6, 160, 1, 2}, {Module::kAttention, 6, 160, 2, 1},
    {Module::kAttention, 6, 320, 1, 1},
};

}  // namespace

SanetPlan MakeSanetPlan(const SanetOptions& options) {
  SanetPlan plan{options, Scaled(kStem, options.width), {}, Scaled(kHead, options.width)};
  int64_t channels = plan.stem;
  int64_t size = Strided(options.input_size, 2);
  for (const TableRow& row : kRows) {
    for (int64_t repetition = 0; repetition < row.repetitions; ++repetition) {
      const Block block{.name = "blocks." + std::to_string(plan.blocks.size()),
                        .module = options.attention ? row.module : Module::kBase,
                        .expansion = row.expansion,
                        .inputs = channels,
                        .outputs = Scaled(row.channels, options.width),
                        .stride = repetition == 0 ? row.stride : 1,
                        .size = size};
      plan.blocks.push_back(block);
      channels = block.outputs;
      size = Strided(size, block.stride);
    }
  }
  return plan;
}

}  // namespace saccade::models
