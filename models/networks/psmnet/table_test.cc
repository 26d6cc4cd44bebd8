#include "models/networks/psmnet/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "models/api/error.h"
#include "models/networks/psmnet/describe.h"

namespace saccade::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Counts CountWith(const Options& options) { return CountPsmnet("ea_psmnet", options); }

TEST(PsmnetCounts, ParametersAsPublished) {
  const Counts plain = CountWith({{"attention", "none"}});
  EXPECT_EQ(plain.AllParameters(), 5'224'768);
  const Counts attentive = CountWith({});
  EXPECT_EQ(attentive.AllParameters(), 5'224'768 + 2'112);
  EXPECT_EQ(attentive.Parameters() - plain.Parameters(), 2'048);
  EXPECT_EQ(attentive.AttentionParameters(), 2'048);
}

// The paper's 796 MB, for a volume of 48 x 135 x 240.
TEST(PsmnetCounts, AttentionMemoryAsPublished) {
  const int64_t positions = 48 * 135 * 240;
  const Counts counts = CountWith({});
  EXPECT_EQ(counts.AttentionBytes(), 4 * (positions * (2 * 16 + 2 * 32 + 32) + 16 * 32));
  EXPECT_NEAR(static_cast<double>(counts.AttentionBytes()) / 1e6, 796.26, 0.005);
  EXPECT_EQ(counts.AttentionMadds(), positions * (2 * 32 * 16 + 32 * 32 + 2 * 16 * 32));
  // The paper's 9.675 TB for non-local attention are the same maps, and the affinities of all pairs of
  // positions.
  const auto n = static_cast<double>(positions);
  EXPECT_NEAR(4 * (n * n + n * (2 * 16 + 2 * 32 + 32)) / 1e12, 9.675, 0.0005);
  EXPECT_EQ(CountWith({{"attention", "none"}}).AttentionBytes(), 0);
}

// A transposed convolution's input has an eighth of its output's positions: 64 to 32 channels, and 64 to 64.
TEST(PsmnetCounts, MultiplyAddsOfAnHourglass) {
  const int64_t volume = int64_t{48} * 136 * 240;
  int64_t madds = 0;
  for (const LayerCount& layer : CountWith({}).layers) {
    if (layer.name.starts_with("dres2.")) madds += layer.madds;
  }
  const int64_t at_half = 32 * 64 + 64 * 64 + 64 * 32;
  const int64_t at_quarter = 64 * 64 + 64 * 64 + 64 * 64;
  EXPECT_EQ(madds, 27 * (volume / 8 * at_half + volume / 64 * at_quarter));
}

TEST(PsmnetTable, NamesAreThoseOfPublishedCheckpoints) {
  const Ledger ledger = RecordPsmnet({});
  std::set<std::string> names;
  for (const TensorSpec& spec : ledger.tensors()) {
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
    EXPECT_EQ(spec.optional_module, spec.name.starts_with("attention.") ? "attention" : "") << spec.name;
  }
  for (const char* name : {"feature_extraction.firstconv.0.0.weight",
                           "feature_extraction.firstconv.4.1.running_var",
                           "feature_extraction.layer1.0.conv1.0.0.weight",
                           "feature_extraction.layer2.0.downsample.0.weight",
                           "feature_extraction.layer2.15.conv2.1.bias",
                           "feature_extraction.layer3.0.downsample.1.weight",
                           "feature_extraction.layer4.2.conv2.0.weight",
                           "feature_extraction.branch1.1.0.weight",
                           "feature_extraction.branch4.1.1.bias",
                           "feature_extraction.lastconv.0.0.weight",
                           "feature_extraction.lastconv.2.weight",
                           "dres0.0.0.weight",
                           "dres0.2.1.weight",
                           "dres1.2.0.weight",
                           "dres2.conv1.0.0.weight",
                           "dres3.conv2.0.weight",
                           "dres4.conv4.0.1.bias",
                           "dres4.conv6.1.weight",
                           "classif1.0.0.weight",
                           "classif3.2.weight",
                           "attention.query.weight",
                           "attention.value.bias"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  EXPECT_FALSE(names.contains("feature_extraction.layer1.0.downsample.0.weight"));
  EXPECT_FALSE(names.contains("feature_extraction.layer4.0.downsample.0.weight"));
  EXPECT_FALSE(names.contains("attention.out.weight"));
}

TEST(PsmnetOptions, AreRead) {
  const PsmnetOptions options = ParsePsmnetOptions("ea_psmnet", {{"attention", "none"},
                                                                 {"max_disparity", "64"},
                                                                 {"width", "0.25"},
                                                                 {"normalization", "scaling"},
                                                                 {"buckets", "544x960,384x1248"},
                                                                 {"exact", "false"}});
  EXPECT_FALSE(options.attention);
  EXPECT_EQ(options.max_disparity, 64);
  EXPECT_EQ(options.channels(), 8);
  EXPECT_TRUE(options.reprojected());
  EXPECT_EQ(options.buckets.sizes.size(), 2U);
  EXPECT_FALSE(options.exact);
  EXPECT_EQ(AsText(options).at("buckets"), "544x960,384x1248");
  EXPECT_EQ(AsText(options).at("normalization"), "scaling");
  EXPECT_EQ(AsText(ParsePsmnetOptions("ea_psmnet", {})).at("max_disparity"), "192");
}

// Returns the error's text, or "" if there is none.
std::string Error(const Options& options) {
  try {
    ParsePsmnetOptions("ea_psmnet", options);
    return "";
  } catch (const LoadError& error) {
    return error.what();
  }
}

TEST(PsmnetOptions, RefuseWhatTheHourglassesCannotHalve) {
  EXPECT_THAT(Error({{"max_disparity", "100"}}), AllOf(HasSubstr("max_disparity"), HasSubstr("of 16")));
  EXPECT_THAT(Error({{"buckets", "stride:8"}}), AllOf(HasSubstr("buckets"), HasSubstr("of 16")));
  EXPECT_THAT(Error({{"buckets", "544x960,540x960"}}), AllOf(HasSubstr("540"), HasSubstr("of 16")));
  EXPECT_EQ(Error({{"buckets", "stride:32"}}), "");
}

TEST(PsmnetOptions, RefuseBadValues) {
  EXPECT_THAT(Error({{"heads", "3"}}), AllOf(HasSubstr("heads"), HasSubstr("divisor")));
  EXPECT_THAT(Error({{"attention", "sao"}}), HasSubstr("ea or none"));
  EXPECT_THAT(Error({{"classes", "21"}}), AllOf(HasSubstr("'classes'"), HasSubstr("\n  max_disparity: ")));
}

TEST(PsmnetDescription, TakesPairs) {
  const Description description = DescribePsmnet("ea_psmnet", {}, {});
  EXPECT_EQ(description.task, Task::kStereo);
  EXPECT_EQ(description.input.views, 2);
  EXPECT_EQ(description.parameters, 5'226'880);
  const Placement nominal = PlacementOf(description.input, kPsmnetNominal);
  EXPECT_EQ(nominal.scaled, kPsmnetNominal);
  EXPECT_EQ(nominal.bucket, (Size{544, 960}));
}

}  // namespace
}  // namespace saccade::models
