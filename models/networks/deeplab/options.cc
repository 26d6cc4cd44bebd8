#include "models/networks/deeplab/options.h"

#include "models/api/error.h"
#include "models/networks/option_reader.h"

namespace saccade::models {
namespace {

constexpr const char* kHeadNames[] = {"kao", "attention", "attention_pool", "aspp"};

DeepLabHead HeadOf(const std::string& name) {
  int head = 0;
  while (name != kHeadNames[head]) ++head;
  return static_cast<DeepLabHead>(head);
}

}  // namespace

DeepLabOptions ParseDeepLabOptions(const std::string& architecture, const Options& options) {
  OptionReader reader(architecture, options);
  DeepLabOptions parsed;
  parsed.kao = architecture.ends_with("_qkv") ? "qkv" : "kv";
  parsed.head = HeadOf(reader.Choice("head", "kao", {std::begin(kHeadNames), std::end(kHeadNames)}));
  parsed.classes = reader.Integer("classes", parsed.classes, 1, 255);
  parsed.head_channels = reader.Integer("head_channels", parsed.head_channels, 8, 2048);
  parsed.heads = reader.Integer("heads", parsed.heads, 1, 64);
  parsed.long_side = reader.Integer("long_side", parsed.long_side, 64, 8192);
  const std::string buckets =
      reader.Text("buckets", AsText(parsed.buckets), "stride:N or sizes as 512x384,384x512");
  parsed.exact = reader.Flag("exact", parsed.exact);
  parsed.width = reader.Number("width", parsed.width, 0.125, 2);
  parsed.blocks = reader.Blocks(parsed.blocks);
  parsed.epsilon = reader.Number("batch_norm_epsilon", parsed.epsilon, 1e-9, 0.1);
  reader.RefuseOthers();

  parsed.buckets = ParseBuckets(architecture, buckets);
  if (parsed.head_channels % parsed.heads != 0) {
    throw LoadError(architecture + ": option head_channels is " + std::to_string(parsed.head_channels) +
                    "; expected a multiple of heads, which is " + std::to_string(parsed.heads));
  }
  return parsed;
}

Options AsText(const DeepLabOptions& options) {
  return {{"head", kHeadNames[static_cast<int>(options.head)]},
          {"classes", std::to_string(options.classes)},
          {"head_channels", std::to_string(options.head_channels)},
          {"heads", std::to_string(options.heads)},
          {"long_side", std::to_string(options.long_side)},
          {"buckets", AsText(options.buckets)},
          {"exact", FlagText(options.exact)},
          {"width", NumberText(options.width)},
          {"blocks", ListText(options.blocks)},
          {"batch_norm_epsilon", NumberText(options.epsilon)}};
}

}  // namespace saccade::models
