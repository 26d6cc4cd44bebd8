#include "models/networks/unet3d/table.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "models/networks/width.h"

namespace saccade::models {
namespace {

// Resolution level of each block; 0 is the finest.
constexpr std::array<int, 5> kLevels = {0, 1, 2, 1, 0};
constexpr size_t kBottom = 2;

std::vector<int64_t> SidesAt(const EncoderDecoder& network, std::vector<int64_t> sides, int level) {
  const size_t skipped = network.step.size() - sides.size();  // a plane has no depth
  for (size_t axis = 0; axis < sides.size(); ++axis) {
    for (int i = 0; i < level; ++i) sides[axis] /= network.step.at(axis + skipped);
  }
  return sides;
}

void RecordBlock(const std::string& name, const EncoderDecoder& network, const UnetBlock& block,
                 const std::vector<int64_t>& sides, Ledger& ledger) {
  for (size_t i = 1; i < block.channels.size(); ++i) {
    const std::string number = std::to_string(i);
    ledger.Convolution(
        name + ".conv" + number,
        {.inputs = block.channels[i - 1], .outputs = block.channels[i], .kernel = network.kernel}, sides);
    ledger.BatchNorm(name + ".bn" + number, block.channels[i]);
  }
}

void RecordAttention(const std::string& name, int64_t channels, const UnetOptions& options,
                     const std::vector<int64_t>& sides, Ledger& ledger) {
  std::vector<TensorSpec> tensors;
  for (const char* transform : {"query", "key", "value"}) {
    tensors.push_back({name + "." + transform + ".weight", {channels, channels}});
  }
  const bool siamese = options.attention == UnetAttention::kSiamese;
  const bool learned = siamese && options.learned;
  if (learned) tensors.push_back({name + ".w", {channels}});
  const int64_t weights = 3 * channels * channels;
  const int64_t positions = std::accumulate(sides.begin(), sides.end(), int64_t{1}, std::multiplies<>());
  std::string operation = siamese ? "siamese" : "regular";
  operation += " attention, " + std::to_string(channels) + " channels, ";
  operation += ExtentText(sides);
  ledger.Add({.name = name,
              .operation = operation,
              .attention = true,
              .parameters = weights + (learned ? channels : 0),
              .madds = positions * (weights + (siamese ? 4 : 2 * positions) * channels)},
             tensors);
  ledger.BatchNorm(name + ".bn", channels);
}

void RecordNetwork(const EncoderDecoder& network, bool attention, const UnetOptions& options,
                   const std::vector<int64_t>& sides, Ledger& ledger) {
  for (size_t i = 0; i < network.blocks.size(); ++i) {
    const UnetBlock& block = network.blocks.at(i);
    const std::string name = network.prefix + block.name;
    const std::vector<int64_t> at = SidesAt(network, sides, kLevels.at(i));
    RecordBlock(name, network, block, at, ledger);
    if (attention && i >= kBottom) {
      RecordAttention(name + ".attention", block.channels.back(), options, at, ledger);
    }
  }
  ledger.Convolution(network.prefix + "output",
                     {.inputs = network.blocks.back().channels.back(),
                      .outputs = 1,
                      .kernel = std::vector<int64_t>(sides.size(), 1),
                      .bias = true},
                     sides);
}

}  // namespace

EncoderDecoder RestoringUnet(const UnetOptions& options) {
  const auto scaled = [&](int64_t channels) { return Scaled(channels, options.width); };
  const int64_t narrow = scaled(32);
  const int64_t middle = scaled(64);
  const int64_t wide = scaled(128);
  return {.prefix = "",
          .blocks = {{{"encoder.0", {1, narrow, narrow}},
                      {"encoder.1", {narrow, middle, middle}},
                      {"bottom", {middle, wide, middle}},
                      {"decoder.1", {2 * middle, middle, narrow}},
                      {"decoder.0", {2 * narrow, narrow, narrow}}}},
          .step = {options.projects ? 1 : 2, 2, 2},
          .kernel = std::vector<int64_t>(options.projects ? 2 : 3, 3)};
}

EncoderDecoder ProjectingUnet(const UnetOptions& options) {
  const auto scaled = [&](int64_t channels) { return Scaled(channels, options.width); };
  const int64_t narrow = scaled(8);
  const int64_t middle = scaled(16);
  const int64_t wide = scaled(32);
  return {.prefix = "projection.",
          .blocks = {{{"encoder.0", {1, narrow}},
                      {"encoder.1", {narrow, middle}},
                      {"bottom", {middle, wide}},
                      {"decoder.1", {middle + wide, middle}},
                      {"decoder.0", {narrow + middle, narrow}}}},
          .step = {1, 2, 2},
          .kernel = {3, 3, 3}};
}

Ledger RecordUnet(const UnetOptions& options) {
  Ledger ledger;
  std::vector<int64_t> sides = {UnetNominalDepth(options), kUnetNominalSide, kUnetNominalSide};
  if (options.projects) {
    RecordNetwork(ProjectingUnet(options), /*attention=*/false, options, sides, ledger);
    sides.erase(sides.begin());
  }
  RecordNetwork(RestoringUnet(options), options.attention != UnetAttention::kNone, options, sides, ledger);
  return ledger;
}

}  // namespace saccade::models
