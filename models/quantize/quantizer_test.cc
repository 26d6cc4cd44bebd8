#include "models/quantize/quantizer.h"

#include <ATen/Context.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/api/error.h"
#include "models/api/model.h"
#include "models/api/target.h"
#include "models/networks/mobile/describe.h"
#include "models/testing/batches.h"
#include "models/testing/random_weights.h"
#include "models/weights/format/file_contents.h"
#include "models/weights/format/safetensors.h"
#include "models/weights/format/weights_format.h"
#include "models/weights/quantized_file.h"

namespace saccade::models {
namespace {

constexpr char kArchitecture[] = "mobilenetv2";
const Options kOptions = {{"width", "0.25"}, {"input_size", "32"}, {"classes", "10"}};

// Quantizes a network of inverted residuals with random weights.
class QuantizerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!CpuMultipliesInt8()) GTEST_SKIP() << "this processor does not multiply int8 itself";
    std::filesystem::create_directory(folder_);
    testing::SaveSafetensors(testing::RandomTensors(MobileTensors(kArchitecture, kOptions).expected),
                             source_);
    at::manual_seed(3);
    pixels_ = at::randn({8, 3, 32, 32});
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  QuantizeReport Run(const QuantizeOptions& options) const {
    const QuantizeInput input = {.architecture = kArchitecture,
                                 .options = kOptions,
                                 .labels = {},
                                 .weights_path = source_,
                                 .digest = digest_,
                                 .items = static_cast<size_t>(pixels_.size(0)),
                                 .run =
                                     [&](const Model& model, size_t item) {
                                       if (seen_) seen_(item);
                                       const auto index = static_cast<int64_t>(item);
                                       const at::Tensor picture = pixels_.narrow(0, index, 1);
                                       return model.Run(testing::WholeBatch(picture)).front();
                                     },
                                 .figure = figure_};
    return Quantize(input, options, path_);
  }

  // The weights in the file that are in 8 bits.
  std::set<std::string> Written() const {
    std::set<std::string> names;
    const auto file = FileContents::Read(path_, kMaxWeightsFileBytes);
    for (const TensorEntry& entry : ParseWeights(file->bytes())) {
      if (entry.type == ElementType::kI8) names.insert(entry.name);
    }
    return names;
  }

  const std::string folder_ = ::testing::TempDir() + "/quantizer." + std::to_string(getpid());
  const std::string source_ = folder_ + "/weights";
  const std::string path_ = folder_ + "/weights.int8.safetensors";
  at::Tensor pixels_;
  std::function<std::string()> digest_;
  std::optional<FigureInput> figure_;
  // Called with each item that is computed.
  std::function<void(size_t item)> seen_;
};

TEST_F(QuantizerTest, TheFileTellsFromWhichWeightsItIs) {
  digest_ = [] { return "abc"; };
  Run({.all_layers = true});
  EXPECT_EQ(SourceDigest(path_), "abc");
  digest_ = nullptr;
  Run({.all_layers = true});
  EXPECT_EQ(SourceDigest(path_), "");
}

TEST_F(QuantizerTest, WeightsThatAreReplacedMeanwhileAreAnError) {
  int asked = 0;
  digest_ = [&] { return asked++ == 0 ? "abc" : "def"; };
  EXPECT_THROW(Run({.all_layers = true}), LoadError);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(QuantizerTest, AModuleIsOneUnit) {
  const QuantizeReport report = Run({.all_layers = true});
  std::vector<std::string> modules;
  for (const UnitCost& unit : report.units) {
    EXPECT_TRUE(unit.quantized);
    if (unit.module.empty()) {
      EXPECT_EQ(unit.layers.size(), 1U);
      continue;
    }
    modules.push_back(unit.module);
    // The first module does not expand.
    EXPECT_EQ(unit.layers.size(), unit.module == "blocks.0" ? 2U : 3U);
    for (const std::string& layer : unit.layers) EXPECT_TRUE(layer.starts_with(unit.module + "."));
  }
  ASSERT_EQ(modules.size(), 17U);
  for (size_t i = 0; i < modules.size(); ++i) EXPECT_EQ(modules[i], "blocks." + std::to_string(i));
  // The stem, the modules and the head.
  EXPECT_EQ(report.units.size(), 19U);
  EXPECT_EQ(report.layers(), 52U);
  EXPECT_EQ(report.quantized_layers(), 52U);
  EXPECT_EQ(Written().size(), 52U);
}

// The first 16 of a folder with ten classes, one after the other, are of one or two of them.
TEST_F(QuantizerTest, UnitsAreTriedWithItemsFromTheWholeSet) {
  pixels_ = at::randn({48, 3, 32, 32});
  std::string step;
  std::set<size_t> tried;
  seen_ = [&](size_t item) {
    if (step == "layers") tried.insert(item);
  };
  Run({.max_loss = 1, .progress = [&](const std::string& name, double /*done*/) { step = name; }});
  std::set<size_t> expected;
  for (size_t item = 0; item < 48; item += 3) expected.insert(item);
  EXPECT_EQ(tried, expected);
}

// Stands for a figure that needs labels: `values` in the order of the networks, the last one for all others.
FigureInput Figures(std::vector<double> values, bool is_error) {
  auto next = std::make_shared<size_t>(0);
  return {.name = "top-1",
          .is_error = is_error,
          .items = 3,
          .measure = [values = std::move(values), next](const Model&, const auto& done) {
            for (size_t item = 0; item < 3; ++item) done(item);
            const double value = values[std::min(*next, values.size() - 1)];
            ++*next;
            return value;
          }};
}

TEST_F(QuantizerTest, WithLabelsTheFigureDecides) {
  // In float32, with all layers, without the costliest unit, and without two.
  figure_ = Figures({0.8, 0.4, 0.6, 0.796}, /*is_error=*/false);
  const QuantizeReport report = Run({.max_loss = 0.01});
  EXPECT_EQ(std::count_if(report.units.begin(), report.units.end(),
                          [](const UnitCost& unit) { return !unit.quantized; }),
            2);
  EXPECT_DOUBLE_EQ(report.loss_of_all, 0.5);
  EXPECT_NEAR(report.loss, 0.005, 1e-9);
  ASSERT_TRUE(report.figure.has_value());
  EXPECT_EQ(report.figure->float32, 0.8);
  EXPECT_EQ(report.figure->int8_of_all, 0.4);
  EXPECT_EQ(report.figure->int8, 0.796);
  EXPECT_EQ(report.figure->items, 3U);
  const auto file = FileContents::Read(path_, kMaxWeightsFileBytes);
  EXPECT_EQ(SafetensorsMetadata(file->bytes()).at("saccade_figure_int8"), "0.796");
  for (const UnitCost& unit : report.units)
    EXPECT_GT(unit.loss, 0) << "ordered by the distance of the answers";
}

// However much the answers change.
TEST_F(QuantizerTest, AFigureThatGetsBetterLosesNothing) {
  figure_ = Figures({2, 1.5}, /*is_error=*/true);
  const QuantizeReport report = Run({.max_loss = 0});
  EXPECT_EQ(report.quantized_layers(), report.layers());
  EXPECT_DOUBLE_EQ(report.loss, -0.25);
}

TEST_F(QuantizerTest, AFigureOfZeroHasNoShares) {
  figure_ = Figures({0}, /*is_error=*/false);
  try {
    Run({});
    FAIL() << "nothing was thrown";
  } catch (const LoadError& error) {
    EXPECT_NE(std::string(error.what()).find("top-1 is 0 in float32 on 3 held-out items"), std::string::npos)
        << error.what();
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(QuantizerTest, AFigureThatIsAlwaysWorseLeavesNothing) {
  figure_ = Figures({1, 0.5}, /*is_error=*/false);
  try {
    Run({.max_loss = 0.005});
    FAIL() << "nothing was thrown";
  } catch (const LoadError& error) {
    EXPECT_NE(std::string(error.what()).find("% of top-1 are lost"), std::string::npos) << error.what();
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST(CheckProcessorQuantizesTest, SaysWhatIsMissing) {
  CheckProcessorQuantizes(/*native=*/true);
  try {
    CheckProcessorQuantizes(/*native=*/false);
    FAIL() << "nothing was thrown";
  } catch (const LoadError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("avx512_vnni"), std::string::npos) << message;
    EXPECT_EQ(message.find("set precision"), std::string::npos) << message;
  }
}

// Otherwise the module would be computed layer by layer, which can be slower than in float32.
TEST_F(QuantizerTest, AModuleIsQuantizedWholeOrNotAtAll) {
  const double loss_of_all = Run({.all_layers = true}).loss;
  const QuantizeReport report = Run({.max_loss = loss_of_all / 2});
  EXPECT_EQ(report.loss_of_all, loss_of_all);
  EXPECT_LE(report.loss, loss_of_all / 2);
  EXPECT_LT(report.quantized_layers(), report.layers());
  EXPECT_GT(report.quantized_layers(), 0U);
  const std::set<std::string> written = Written();
  EXPECT_EQ(written.size(), report.quantized_layers());
  for (const UnitCost& unit : report.units) {
    EXPECT_GT(unit.loss, 0);
    for (const std::string& layer : unit.layers) EXPECT_EQ(written.contains(layer), unit.quantized) << layer;
  }
  std::map<std::string, std::set<bool>> modules;
  for (const TensorSpec& spec : MobileTensors(kArchitecture, kOptions).expected) {
    if (spec.shape.size() != 4 || !spec.name.starts_with("blocks.")) continue;
    modules[spec.name.substr(0, spec.name.find('.', 7))].insert(written.contains(spec.name));
  }
  EXPECT_EQ(modules.size(), 17U);
  for (const auto& [module, quantized] : modules) EXPECT_EQ(quantized.size(), 1U) << module;
  // Those that are left out cost most.
  double least = 1;
  double most = 0;
  for (const UnitCost& unit : report.units) {
    if (unit.quantized) most = std::max(most, unit.loss);
    if (!unit.quantized) least = std::min(least, unit.loss);
  }
  EXPECT_LE(most, least);
}

}  // namespace
}  // namespace saccade::models
