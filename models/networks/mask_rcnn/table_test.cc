#include "models/networks/mask_rcnn/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <stdexcept>

#include "models/api/error.h"
#include "models/networks/mask_rcnn/describe.h"

namespace saccade::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kR50 = "ea_mask_rcnn_r50";
const Options kPlain = {{"attention", "none"}, {"fpn", "torchvision"}};

const LayerCount& Row(const Counts& counts, const std::string& name) {
  for (const LayerCount& layer : counts.layers) {
    if (layer.name == name) return layer;
  }
  throw std::runtime_error("no row " + name);
}

// The paper's table 2, to its printed precision.
TEST(MaskRcnnCounts, AttentionCostsWhatThePaperSays) {
  struct PaperRow {
    const char* place;
    double bytes, bytes_digit, madds, madds_digit;
  };
  constexpr PaperRow kRows[] = {
      {"res3", 41.3e6, 1e5, 1.21e9, 1e7}, {"res4", 19.5e6, 1e5, 596e6, 1e6},
      {"fpn1", 220e6, 1e6, 5.28e9, 1e7},  {"fpn2", 55.1e6, 1e5, 1.32e9, 1e7},
      {"fpn3", 13.8e6, 1e5, 330e6, 1e6},  {"fpn4", 3.46e6, 1e4, 82.6e6, 1e5},
      {"fpn5", 877e3, 1e3, 20.6e6, 1e5},
  };
  const Counts counts = CountMaskRcnn(kR50, {});
  for (const PaperRow& row : kRows) {
    const LayerCount& layer = Row(counts, std::string("backbone.attention.") + row.place);
    EXPECT_TRUE(layer.attention);
    EXPECT_NEAR(static_cast<double>(layer.attention_bytes), row.bytes, row.bytes_digit / 2) << row.place;
    EXPECT_NEAR(static_cast<double>(layer.madds), row.madds, row.madds_digit / 2) << row.place;
  }
  EXPECT_NEAR(static_cast<double>(counts.AttentionBytes()), 354.21e6, 5e3);
  EXPECT_NEAR(static_cast<double>(counts.AttentionMadds()), 8.847e9, 5e5);
}

// The right half of EA's table 2. The paper adds up 22.4 G and 712 G.
TEST(MaskRcnnCounts, NonLocalBlocksCostWhatThePaperSays) {
  struct PaperRow {
    const char* place;
    double bytes, bytes_digit, madds, madds_digit;
  };
  constexpr PaperRow kRows[] = {
      {"res3", 122e6, 1e6, 3.74e9, 1e7},  {"res4", 24.5e6, 1e5, 748e6, 1e6},
      {"fpn1", 20.8e9, 1e8, 662e9, 1e9},  {"fpn2", 1.34e9, 1e7, 42.3e9, 1e8},
      {"fpn3", 94.0e6, 1e5, 2.86e9, 1e7}, {"fpn4", 8.46e6, 1e4, 234e6, 1e6},
      {"fpn5", 1.17e6, 1e4, 28.4e6, 1e5},
  };
  const Counts counts = CountMaskRcnn(kR50, {{"operator", "non_local"}});
  for (const PaperRow& row : kRows) {
    const LayerCount& layer = Row(counts, std::string("backbone.attention.") + row.place);
    EXPECT_NEAR(static_cast<double>(layer.attention_bytes), row.bytes, row.bytes_digit / 2) << row.place;
    EXPECT_NEAR(static_cast<double>(layer.madds), row.madds, row.madds_digit / 2) << row.place;
  }
  EXPECT_NEAR(static_cast<double>(counts.AttentionBytes()), 22.4e9, 5e7);
  EXPECT_NEAR(static_cast<double>(counts.AttentionMadds()), 712e9, 5e8);
  EXPECT_EQ(counts.AllParameters(), CountMaskRcnn(kR50, {}).AllParameters());
}

TEST(MaskRcnnCounts, AttentionAddsTheParametersOfThePaper) {
  const Counts with = CountMaskRcnn(kR50, {});
  const Counts without = CountMaskRcnn(kR50, {{"attention", "none"}});
  EXPECT_EQ(with.AttentionParameters(), 1'114'112);
  EXPECT_EQ(with.Parameters() - without.Parameters(), 1'114'112);
  EXPECT_EQ(with.AllParameters() - without.AllParameters(), 1'119'808);
}

// torchvision states 44,401,393 for its weights; its batch norms are frozen and not counted.
TEST(MaskRcnnCounts, PlainParametersAreTorchvisions) {
  const Counts counts = CountMaskRcnn(kR50, kPlain);
  constexpr int64_t kBatchNorms = 53'120;
  EXPECT_EQ(counts.AllParameters(), 44'401'393 + kBatchNorms);
  EXPECT_EQ(DescribeMaskRcnn(kR50, kPlain, {}).parameters, 44'454'513);
}

TEST(MaskRcnnCounts, OfTorchvisionsNameAreTorchvisions) {
  const Description description = DescribeMaskRcnn("maskrcnn_resnet50_fpn", {}, {});
  EXPECT_EQ(description.parameters, 44'454'513);
  EXPECT_EQ(description.options.at("attention"), "none");
  EXPECT_EQ(description.options.at("fpn"), "torchvision");
  // Its published weights were frozen with 0.
  EXPECT_EQ(description.options.at("batch_norm_epsilon"), "0");
}

TEST(MaskRcnnTable, NamesEveryTensorOnce) {
  for (const char* architecture : {kR50, "ea_mask_rcnn_r101", "ea_mask_rcnn_x101"}) {
    for (const char* fpn : {"paper", "torchvision"}) {
      Ledger ledger;
      RecordMaskRcnn(MakeMaskRcnnTable(architecture, ParseMaskRcnnOptions(architecture, {{"fpn", fpn}})),
                     ledger);
      std::set<std::string> names;
      for (const TensorSpec& spec : ledger.tensors()) {
        EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
        EXPECT_EQ(!spec.optional_module.empty(), spec.name.starts_with("backbone.attention.")) << spec.name;
      }
      EXPECT_TRUE(names.contains("backbone.body.layer4.0.downsample.1.running_var"));
      EXPECT_TRUE(names.contains("backbone.fpn.layer_blocks.3.0.bias"));
      EXPECT_TRUE(names.contains("roi_heads.mask_predictor.mask_fcn_logits.weight"));
      EXPECT_EQ(names.contains("backbone.fpn.top.0.weight"), fpn == std::string("paper"));
    }
  }
}

TEST(MaskRcnnTable, ScalesEveryChannelButAttentions) {
  using Shape = std::vector<int64_t>;
  for (const char* architecture : {kR50, "ea_mask_rcnn_x101"}) {
    Ledger ledger;
    RecordMaskRcnn(MakeMaskRcnnTable(architecture, ParseMaskRcnnOptions(architecture, {{"width", "0.125"}})),
                   ledger);
    std::map<std::string, Shape> shapes;
    for (const TensorSpec& spec : ledger.tensors()) shapes[spec.name] = spec.shape;
    EXPECT_EQ(shapes["backbone.body.conv1.weight"], (Shape{8, 3, 3, 3}));
    EXPECT_EQ(shapes["roi_heads.box_head.fc6.weight"], (Shape{128, 32 * 49}));
    EXPECT_EQ(shapes["backbone.attention.fpn1.out.weight"], (Shape{32, 64, 1, 1}));
    EXPECT_EQ(shapes["backbone.body.layer1.0.conv2.weight"],
              IsResnext(architecture) ? (Shape{16, 4, 3, 3}) : (Shape{8, 8, 3, 3}));
  }
}

TEST(MaskRcnnDescription, SaysWhatGoesIn) {
  const Description description = DescribeMaskRcnn(
      kR50, {{"short_side", "600"}, {"long_side", "1000"}, {"buckets", "600x992,992x600"}}, {});
  EXPECT_EQ(description.architecture, kR50);
  EXPECT_EQ(description.task, Task::kDetection);
  EXPECT_EQ(description.classes, 91);
  const Placement placement = PlacementOf(description.input, {480, 640});
  EXPECT_EQ(placement.scaled, (Size{600, 800}));
  EXPECT_EQ(placement.bucket, (Size{600, 992}));
  EXPECT_FALSE(description.input.antialias);
  EXPECT_FALSE(description.input.reduced_jpeg);
  EXPECT_TRUE(DescribeMaskRcnn(kR50, {{"reduced_jpeg", "true"}}, {}).input.reduced_jpeg);
}

TEST(MaskRcnnOptions, AreReadAndWritten) {
  const Options text = {{"fpn", "torchvision"}, {"attention", "fpn2,res3"}, {"normalization", "scaling"},
                        {"heads", "2"},         {"blocks", "1,1,2,1"},      {"buckets", "stride:64"},
                        {"exact", "true"},      {"batch_norm_epsilon", "0"}};
  const MaskRcnnOptions options = ParseMaskRcnnOptions(kR50, text);
  EXPECT_FALSE(options.paper_pyramid);
  EXPECT_TRUE(options.Attends(AttentionPlace::kRes3));
  EXPECT_TRUE(options.Attends(AttentionPlace::kFpn2));
  EXPECT_EQ(options.attention.size(), 2U);
  EXPECT_FALSE(options.softmax);
  EXPECT_TRUE(options.exact);
  EXPECT_EQ(options.batch_norm_epsilon, 0);
  const Options written = AsText(options);
  EXPECT_EQ(written.at("attention"), "res3,fpn2");
  EXPECT_EQ(written.at("blocks"), "1,1,2,1");
  EXPECT_EQ(written.at("buckets"), "stride:64");
  EXPECT_EQ(written.at("reduced_jpeg"), "false");
  EXPECT_EQ(written.at("score_threshold"), "0.05");
  EXPECT_EQ(AsText(ParseMaskRcnnOptions(kR50, written)), written);
  EXPECT_EQ(AsText(ParseMaskRcnnOptions("ea_mask_rcnn_x101", {})).at("blocks"), "3,4,23,3");
}

std::string Error(const std::string& architecture, const Options& options) {
  try {
    ParseMaskRcnnOptions(architecture, options);
    return "";
  } catch (const LoadError& error) {
    return error.what();
  }
}

TEST(MaskRcnnOptions, RefuseBadValues) {
  EXPECT_THAT(Error(kR50, {{"atention", "none"}}),
              AllOf(HasSubstr("'atention'"), HasSubstr("\n  attention: ")));
  for (const char* places : {"", "res2", "fpn1,", "fpn1,fpn1", "none,fpn1", "res3 fpn1"}) {
    EXPECT_THAT(Error(kR50, {{"attention", places}}), HasSubstr("option attention is")) << places;
  }
  for (const char* blocks : {"", "3", "3,4,6", "3,4,6,3,1", "3,4,6,0", "3,4,6,65", "3, 4,6,3"}) {
    EXPECT_THAT(Error(kR50, {{"blocks", blocks}}), HasSubstr("option blocks is")) << blocks;
  }
  EXPECT_THAT(Error(kR50, {{"heads", "3"}}), HasSubstr("key_channels"));
  EXPECT_THAT(Error(kR50, {{"classes", "1"}}), HasSubstr("option classes"));
  EXPECT_THAT(Error(kR50, {{"width", "0.3"}}), HasSubstr("a multiple of 0.125"));
  EXPECT_EQ(Error(kR50, {{"width", "0.375"}}), "");
  EXPECT_THAT(Error("ea_mask_rcnn_x101", {{"width", "0.375"}}), HasSubstr("0.125, 0.25, 0.5 or 1"));
  EXPECT_THAT(Error(kR50, {{"buckets", "stride:2"}}), HasSubstr("at least 4"));
  EXPECT_THAT(Error(kR50, {{"buckets", "800x1344,3x800"}}), HasSubstr("at least 4"));
}

}  // namespace
}  // namespace saccade::models
