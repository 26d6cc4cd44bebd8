#include "models/networks/rc3d/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <stdexcept>

#include "models/api/error.h"
#include "models/networks/rc3d/describe.h"

namespace saccade::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Counts CountWith(const Options& options) { return CountRc3d("ea_rc3d", options); }

const LayerCount& Row(const Counts& counts, const std::string& name) {
  for (const LayerCount& layer : counts.layers) {
    if (layer.name == name) return layer;
  }
  throw std::runtime_error("no row " + name);
}

// Weights of a stage's convolutions: its first block's shortcut, and 1x1x1, 3x3x3 and 1x1x1 in every block.
int64_t StageWeights(int64_t inputs, int64_t middle, int64_t blocks) {
  const int64_t outputs = 4 * middle;
  const int64_t behind = 27 * middle * middle + middle * outputs;
  return inputs * outputs + inputs * middle + behind + (blocks - 1) * (outputs * middle + behind);
}

// Weights and biases of a stage's batch norms.
int64_t StageNorms(int64_t middle, int64_t blocks) { return 2 * (4 * middle + blocks * 6 * middle); }

TEST(Rc3dCounts, ParametersByHand) {
  const int64_t backbone = 3 * 64 * 343 + StageWeights(64, 64, 3) + StageWeights(256, 128, 4) +
                           StageWeights(512, 256, 6) + StageWeights(1024, 512, 3);
  const int64_t norms =
      2 * 64 + StageNorms(64, 3) + StageNorms(128, 4) + StageNorms(256, 6) + StageNorms(512, 3);
  const int64_t proposals = 27 * 1024 * 512 + 512 * (10 + 20);
  const int64_t head = 2048 * (21 + 42);
  const Counts plain = CountWith({{"attention", "none"}});
  EXPECT_EQ(plain.Parameters(), backbone + proposals + head);
  EXPECT_EQ(plain.AllParameters(), backbone + norms + proposals + 512 + 30 + head + 63);
  EXPECT_EQ(plain.AllParameters(), 60'499'741);

  const Counts attentive = CountWith({});
  EXPECT_EQ(attentive.AttentionParameters(), 4 * 64 * (1024 + 2048));
  EXPECT_EQ(attentive.AllParameters() - plain.AllParameters(), 4 * 64 * 3072 + 2 * 3 * 64 + 3072);
  EXPECT_EQ(attentive.AllParameters(), 61'289'629);
}

TEST(Rc3dCounts, MultiplyAddsByHand) {
  const Counts counts = CountWith({});
  EXPECT_EQ(Row(counts, "conv1").madds, int64_t{768} * 56 * 56 * 64 * 3 * 343);
  EXPECT_THAT(Row(counts, "conv1").operation,
              HasSubstr("7x7x7 convolution, 3 to 64, stride 1x2x2, 768x56x56"));
  EXPECT_EQ(Row(counts, "layer1.0.conv2").madds, int64_t{384} * 28 * 28 * 64 * 64 * 27);
  EXPECT_EQ(Row(counts, "layer2.0.conv1").madds, int64_t{384} * 28 * 28 * 256 * 128);
  EXPECT_EQ(Row(counts, "layer2.0.downsample.0").madds, int64_t{192} * 14 * 14 * 256 * 512);
  EXPECT_EQ(Row(counts, "layer3.5.conv2").madds, int64_t{96} * 7 * 7 * 256 * 256 * 27);
  EXPECT_EQ(Row(counts, "tpn.conv").madds, int64_t{96} * 7 * 7 * 1024 * 512 * 27);
  EXPECT_EQ(Row(counts, "tpn.cls_logits").madds, 96 * 512 * 10);
  EXPECT_EQ(Row(counts, "layer4.0.conv1").madds, int64_t{300} * 16 * 1024 * 512);
  EXPECT_EQ(Row(counts, "layer4.0.conv2").madds, int64_t{300} * 2 * 512 * 512 * 27);
  EXPECT_EQ(Row(counts, "head.segment_pred").madds, 300 * 2048 * 42);
}

// "res{x} and fpn{x} indicate inserting attention modules after the x-th ResBlock group or FPN level x".
TEST(Rc3dCounts, AttentionAfterTheThirdAndFourthResBlockGroup) {
  const Counts counts = CountWith({});
  for (const auto& [name, positions, channels] :
       {std::tuple{"attention.res3", int64_t{96} * 7 * 7, 1024}, {"attention.res4", 300 * 2, 2048}}) {
    const LayerCount& row = Row(counts, name);
    EXPECT_EQ(row.madds, positions * (4 * 64 * channels + 2 * 64 * 64)) << name;
    EXPECT_EQ(row.attention_bytes, 4 * (positions * (4 * 64 + 2 * channels) + 64 * 64)) << name;
  }
  EXPECT_EQ(CountWith({{"attention", "none"}}).AttentionMadds(), 0);
  EXPECT_EQ(CountWith({{"attention", "res4"}}).AttentionParameters(), 4 * 64 * 2048);
  EXPECT_EQ(CountWith({{"attention", "res1,res2"}}).AttentionParameters(), 4 * 64 * (256 + 512));
}

TEST(Rc3dTable, NamesEveryTensorOnce) {
  std::map<std::string, std::vector<int64_t>> shapes;
  const Ledger ledger = RecordRc3d({});
  for (const TensorSpec& spec : ledger.tensors()) {
    EXPECT_TRUE(shapes.emplace(spec.name, spec.shape).second) << spec.name;
    EXPECT_EQ(!spec.optional_module.empty(), spec.name.starts_with("attention.")) << spec.name;
  }
  using Shape = std::vector<int64_t>;
  EXPECT_EQ(shapes["conv1.weight"], (Shape{64, 3, 7, 7, 7}));
  EXPECT_EQ(shapes["layer2.0.conv2.weight"], (Shape{128, 128, 3, 3, 3}));
  EXPECT_EQ(shapes["layer4.0.downsample.0.weight"], (Shape{2048, 1024, 1, 1, 1}));
  EXPECT_EQ(shapes["layer3.5.bn3.running_var"], (Shape{1024}));
  EXPECT_EQ(shapes["attention.res3.out.weight"], (Shape{1024, 64, 1, 1, 1}));
  EXPECT_EQ(shapes["attention.res4.out.weight"], (Shape{2048, 64, 1, 1, 1}));
  EXPECT_EQ(shapes["tpn.conv.bias"], (Shape{512}));
  EXPECT_EQ(shapes["tpn.segment_pred.weight"], (Shape{20, 512, 1, 1, 1}));
  EXPECT_EQ(shapes["head.segment_pred.weight"], (Shape{42, 2048}));
}

TEST(Rc3dDescription, TakesClips) {
  const Description description = DescribeRc3d("ea_rc3d", {}, {});
  EXPECT_EQ(description.task, Task::kActions);
  EXPECT_EQ(description.classes, 21);
  EXPECT_EQ(description.parameters, CountWith({}).AllParameters());
  EXPECT_EQ(description.input.medium, Medium::kClip);
  EXPECT_EQ(description.input.clip.max_frames, 768);
  EXPECT_EQ(description.input.clip.frames_per_second, 25);
  EXPECT_EQ(description.input.short_side, 128);
  EXPECT_EQ(PlacementOfClip(description.input, {240, 320}, 100),
            (Placement{{240, 320}, {112, 112}, {112, 112}, 100, 112}));
}

TEST(Rc3dOptions, AreReadAndWritten) {
  const Options text = {{"attention", "res4"},
                        {"anchors", "3,1,7"},
                        {"frames", "256"},
                        {"size", "96"},
                        {"width", "0.25"},
                        {"blocks", "1,2,3,4"},
                        {"frames_per_second", "12.5"}};
  const Rc3dOptions options = ParseRc3dOptions("ea_rc3d", text);
  EXPECT_EQ(AttentionBehind(options, 2), "");
  EXPECT_EQ(AttentionBehind(options, 3), "attention.res4");
  EXPECT_EQ(options.anchors, (std::vector<int64_t>{3, 1, 7}));
  EXPECT_EQ(options.blocks, (std::array<int64_t, 4>{1, 2, 3, 4}));
  EXPECT_EQ(Rc3dBackbone(options).StemChannels(), 16);
  const Options written = AsText(options);
  for (const auto& [name, value] : text) EXPECT_EQ(written.at(name), value);
  EXPECT_EQ(AsText(ParseRc3dOptions("ea_rc3d", written)), written);
  EXPECT_EQ(AsText(ParseRc3dOptions("ea_rc3d", {{"attention", "res4,res3"}})).at("attention"), "res3,res4");
  EXPECT_EQ(AsText(ParseRc3dOptions("ea_rc3d", {{"attention", "none"}})).at("attention"), "none");
}

// Returns the error's text, or "" if there is none.
std::string Error(const std::string& name, const std::string& value) {
  try {
    ParseRc3dOptions("ea_rc3d", {{name, value}});
    return "";
  } catch (const LoadError& error) {
    return error.what();
  }
}

TEST(Rc3dOptions, RefuseBadValues) {
  for (const char* places : {"", "res5", "res3,", "res3,res3", "none,res3", "res3 res4"}) {
    EXPECT_THAT(
        Error("attention", places),
        AllOf(HasSubstr("ea_rc3d: option attention is"),
              HasSubstr("none, or a list separated by commas, each at most once, of res1, res2, res3, res4")))
        << places;
  }
  for (const char* anchors : {"", "0", "2,,4", "2,513", "1.5", "2, 4"}) {
    EXPECT_THAT(Error("anchors", anchors),
                AllOf(HasSubstr("option anchors is"), HasSubstr("1 to 64 separated by commas"),
                      HasSubstr("a whole number from 1 to 512")))
        << anchors;
  }
  for (const char* blocks : {"", "3", "3,4,6", "3,4,6,3,1", "3,4,6,0", "3,4,6,65"}) {
    EXPECT_THAT(Error("blocks", blocks), HasSubstr("option blocks is")) << blocks;
  }
  EXPECT_THAT(Error("frames", "100"),
              AllOf(HasSubstr("option frames is '100'"), HasSubstr("a multiple of 16")));
  EXPECT_THAT(Error("size", "120"), AllOf(HasSubstr("option size is '120'"), HasSubstr("a multiple of 16")));
  EXPECT_THAT(Error("size", "16"), HasSubstr("from 32 to 512"));
  EXPECT_THAT(Error("heads", "3"),
              AllOf(HasSubstr("option heads is '3'"), HasSubstr("a divisor of key_channels")));
  EXPECT_THAT(Error("width", "0.3"), HasSubstr("a multiple of 0.125"));
  EXPECT_THAT(Error("classes", "1"), HasSubstr("option classes"));
  EXPECT_THAT(Error("clases", "3"),
              AllOf(HasSubstr("'clases'"), HasSubstr("\n  anchors: 1 to 64 separated by commas")));
}

}  // namespace
}  // namespace saccade::models
