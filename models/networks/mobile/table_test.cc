#include "models/networks/mobile/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "models/api/error.h"
#include "models/networks/mobile/describe.h"
#include "models/networks/mobile/layers.h"
#include "models/networks/mobile/parameters.h"
#include "models/networks/width.h"

namespace saccade::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Counts CountWith(const std::string& architecture, const Options& options = {}) {
  return CountMobile(MakeMobilePlan(ParseMobileOptions(architecture, options)));
}

struct Published {
  const char* architecture;
  Options options;
  int64_t parameters;
  int64_t madds;
};

// Table 8 of SANet's paper and tables 3 to 5 of KANet's, to their printed precision, with one exception:
// SANet's paper prints 288 M multiply-adds.
TEST(MobileCounts, MatchThePapers) {
  const std::vector<Published> rows = {{"sanet", {}, 3'449'408, 289'856'288},
                                       {"sanet", {{"similarity", "ones"}}, 3'448'448, 289'856'288},
                                       {"attnnet", {}, 3'448'448, 365'374'304},
                                       {"attnnet_pool", {}, 3'448'448, 300'248'480},
                                       {"attnnet_1n", {}, 3'448'448, 312'090'528},
                                       {"kanet_kv", {}, 3'448'448, 288'413'728},
                                       {"kanet_qkv", {}, 3'448'448, 281'119'392},
                                       {"mobilenetv2", {}, 3'469'760, 300'774'272},
                                       {"mobilenetv2_kao", {}, 3'461'120, 298'649'632}};
  for (const Published& row : rows) {
    const Counts counts = CountWith(row.architecture, row.options);
    EXPECT_EQ(counts.Parameters(), row.parameters) << row.architecture;
    EXPECT_EQ(counts.Madds(), row.madds) << row.architecture;
  }
  EXPECT_EQ(CountWith("sanet").AttentionMadds(), 11'935'616);
  EXPECT_EQ(CountWith("sanet").AttentionParameters(), 112'640 + 960);
}

// "On the contrary, based on KANet_KV, we replace all AttnSkipModules by BaseModules." KANet's BaseModule is
// MobileNetV2's; the BaseSkipModules stay. The paper prints 3.46 M, which comes out, and 298 M, which does
// not.
TEST(MobileCounts, KanetWithoutKaoHasBaseModulesInsteadOfAttnSkipModules) {
  const Options none = {{"attention", "none"}};
  const std::vector<Block> with = MakeMobilePlan(ParseMobileOptions("kanet_kv", {})).blocks;
  const std::vector<Block> without = MakeMobilePlan(ParseMobileOptions("kanet_kv", none)).blocks;
  ASSERT_EQ(with.size(), without.size());
  for (size_t i = 0; i < with.size(); ++i) {
    const bool attends = with[i].module == Module::kAttention;
    EXPECT_EQ(without[i].module, attends ? Module::kPlain : Module::kBase) << i;
    EXPECT_TRUE(attends || with[i].module == Module::kBase) << i;
  }
  EXPECT_EQ(CountWith("kanet_kv", none).Parameters(), 3'457'088);
  EXPECT_EQ(CountWith("kanet_kv", none).Madds(), 290'538'368);
}

// Table 4 of SANet's paper, "the network using the same architecture as SANet with Squeeze-and-Excite block",
// prints 3.44 M parameters, which come out where the blocks halve the channels, and 294 M multiply-adds,
// which do not. Halving makes a block's matrices as large as the value transform that it replaces.
TEST(MobileCounts, SenetHasAsManyParametersAsAttnnet) {
  const Counts counts = CountWith("sanet", {{"attention", "se"}});
  EXPECT_EQ(counts.Parameters(), CountWith("attnnet").Parameters());
  EXPECT_EQ(counts.AttentionParameters(), 112'640);
  // Compared with SANet's attention, c c N for the values and 4 c N fall away. 2 c N for the means and the
  // gates are added, and c c for the matrices.
  EXPECT_EQ(counts.AttentionMadds(), 2 * 136'416 + 112'640);
  EXPECT_EQ(CountWith("sanet", {{"attention", "se"}, {"reduction", "16"}}).AttentionParameters(),
            112'640 / 8);
}

TEST(MobileCounts, MatchTheParametersThatAreLoaded) {
  const MobilePlan senet = MakeMobilePlan(ParseMobileOptions("sanet", {{"attention", "se"}}));
  EXPECT_EQ(CountMobile(senet).AllParameters(), 3'479'272);
  for (const char* architecture : {"attnnet", "attnnet_1n", "attnnet_pool", "kanet_kv", "kanet_qkv",
                                   "mobilenetv2_kao", "mobilenetv2_sao", "sanet"}) {
    for (const Options& options : {Options{}, Options{{"attention", "none"}}, Options{{"width", "0.25"}}}) {
      const MobilePlan plan = MakeMobilePlan(ParseMobileOptions(architecture, options));
      int64_t parameters = 0;
      for (const TensorSpec& spec : MobileParameters(plan)) {
        int64_t size = 1;
        for (const int64_t side : spec.shape) size *= side;
        if (spec.name.find("running_") == std::string::npos) parameters += size;
      }
      EXPECT_EQ(CountMobile(plan).AllParameters(), parameters) << architecture;
    }
  }
}

TEST(MobilePlan, WithoutAttentionHasMobileNetsModulesOrSanetsOwn) {
  const auto modules = [](const char* architecture, const Options& options) {
    std::set<Module> found;
    for (const Block& block : MakeMobilePlan(ParseMobileOptions(architecture, options)).blocks)
      found.insert(block.module);
    return found;
  };
  const Options none = {{"attention", "none"}};
  EXPECT_EQ(modules("sanet", none), std::set{Module::kBase});
  EXPECT_EQ(modules("kanet_kv", none), (std::set{Module::kPlain, Module::kBase}));
  EXPECT_EQ(modules("mobilenetv2_kao", none), std::set{Module::kPlain});
  EXPECT_EQ(modules("mobilenetv2", {}), std::set{Module::kPlain});
  EXPECT_EQ(modules("mobilenetv2_sao", {}), (std::set{Module::kPlain, Module::kAttention}));
  EXPECT_EQ(modules("kanet_qkv", {}), (std::set{Module::kBase, Module::kAttention}));
}

TEST(MobilePlan, UnfoldsTheTable) {
  const MobilePlan plan = MakeMobilePlan(ParseMobileOptions("sanet", {}));
  ASSERT_EQ(plan.blocks.size(), 17U);
  EXPECT_EQ(plan.blocks[0].expanded(), 0);
  EXPECT_EQ(plan.blocks[5].module, Module::kAttention);
  EXPECT_EQ(plan.blocks[5].size, 28);
  EXPECT_EQ(plan.blocks[5].filtered(), 5 * 32);
  EXPECT_TRUE(plan.blocks[5].skip());
  EXPECT_EQ(plan.blocks[6].filtered(), 6 * 32);
  EXPECT_FALSE(plan.blocks[6].skip());
  EXPECT_EQ(plan.blocks[16].name, "blocks.16");
  EXPECT_EQ(plan.blocks[16].outputs, 320);
  EXPECT_EQ(plan.blocks[16].size, 7);
}

TEST(MobileOptions, AreRead) {
  const MobileOptions options = ParseMobileOptions("sanet", {{"attention", "none"},
                                                             {"global_term", "false"},
                                                             {"classes", "10"},
                                                             {"width", "0.5"},
                                                             {"input_size", "96"}});
  EXPECT_EQ(options.attention, MobileAttention::kNone);
  EXPECT_FALSE(options.global_term);
  EXPECT_TRUE(options.learned);
  EXPECT_EQ(options.classes, 10);
  EXPECT_EQ(options.width, 0.5);
  EXPECT_EQ(options.input_size, 96);
  EXPECT_EQ(AsText("sanet", options).at("width"), "0.5");
}

// Returns the error's text, or "" if there is none.
std::string Error(const Options& options) {
  try {
    ParseMobileOptions("sanet", options);
    return "";
  } catch (const LoadError& error) {
    return error.what();
  }
}

// torchvision states this number of parameters for its weights; 232 is the size of weights="DEFAULT".
TEST(MobileDescription, OfTorchvisionsNameIsTorchvisions) {
  const Description description = DescribeMobile("mobilenet_v2", {}, {});
  EXPECT_EQ(description.parameters, 3'504'872);
  EXPECT_EQ(description.input.short_side, 232);
  EXPECT_EQ(description.input.height, 224);
  EXPECT_FALSE(description.input.reduced_jpeg);
  EXPECT_EQ(DescribeMobile("mobilenetv2", {}, {}).input.short_side, 256);
}

TEST(MobileOptions, RefuseUnknownNamesAndListTheLegalOnes) {
  EXPECT_THAT(Error({{"clases", "10"}}),
              AllOf(HasSubstr("'clases'"), HasSubstr("\n  classes: a whole number from 1 to 100000"),
                    HasSubstr("\n  attention: sao or se or none (default sao)")));
}

TEST(MobileOptions, RefuseBadValues) {
  EXPECT_THAT(Error({{"attention", "softmax"}}),
              AllOf(HasSubstr("'softmax'"), HasSubstr("sao or se or none")));
  for (const char* value : {"", "0", "-1", "10 ", "1e3", "100001", "99999999999999999999"}) {
    EXPECT_THAT(Error({{"classes", value}}), HasSubstr("option classes")) << value;
  }
  for (const char* value : {"", "0", "nan", "inf", "5", "0.25x", "-1"}) {
    EXPECT_THAT(Error({{"width", value}}), HasSubstr("option width")) << value;
  }
}

TEST(Scaled, RoundsToTheNearestMultipleOfEight) {
  EXPECT_EQ(Scaled(32, 1), 32);
  EXPECT_EQ(Scaled(24, 0.5), 16);  // 12 is halfway between 8 and 16: rounds up
  EXPECT_EQ(Scaled(16, 0.25), 8);
  EXPECT_EQ(Scaled(96, 0.35), 32);
}

}  // namespace
}  // namespace saccade::models
