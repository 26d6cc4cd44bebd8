#include "models/networks/mobile/modules.h"

#include <ATen/Context.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/inverted_residual/inverted_residual_int8.h"
#include "models/api/target.h"
#include "models/layers/calibration.h"
#include "models/layers/int8_convolution.h"
#include "models/layers/quantized_map.h"
#include "models/networks/mobile/parameters.h"
#include "models/testing/eager_mobile.h"
#include "models/testing/random_weights.h"

namespace saccade::models {
namespace {

// Limits oneDNN to the instructions that our kernel has, before its first operation, unless the environment
// limits it already. For AMX it multiplies the scales of the input and of the weights first, and then the
// sum, which rounds other numbers.
[[maybe_unused]] const int kOneDnnWithoutAmx =
    setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_VNNI", /*overwrite=*/0);

MobileOptions Sanet(const Options& options = {}) { return ParseMobileOptions("sanet", options); }

TensorMap Tensors(const Block& block, const MobileOptions& options) {
  MobilePlan plan = MakeMobilePlan(options);
  plan.blocks = {block};
  TensorMap tensors = testing::RandomTensors(MobileParameters(plan));
  for (auto& [name, tensor] : tensors) {
    if (name.ends_with("coefficients.weight")) tensor.abs_().add_(0.2);  // or attention would be a plain mean
  }
  return tensors;
}

void ExpectAgreement(const Block& block, const MobileOptions& options) {
  const TensorMap tensors = Tensors(block, options);
  const at::Tensor x = at::randn({2, block.inputs, block.size, block.size + 2});
  TensorMap precise;
  for (const auto& [name, tensor] : tensors) precise[name] = tensor.to(at::kDouble);
  const at::Tensor expected = testing::EagerModule(block, options, precise, x.to(at::kDouble));
  const MobileModule module(block, options, tensors);
  EXPECT_TRUE(module.IsFusedFor(x));
  const at::Tensor got = module(x.contiguous(at::MemoryFormat::ChannelsLast));
  ASSERT_EQ(got.sizes(), expected.sizes());
  EXPECT_LT(got.to(at::kDouble).sub(expected).norm().item<double>() / expected.norm().item<double>(), 1e-5);
}

TEST(MobileModule, BaseModuleAgrees) {
  ExpectAgreement({"blocks.0", Module::kBase, 6, 16, 16, 1, 9}, Sanet());
  ExpectAgreement({"blocks.0", Module::kBase, 6, 16, 24, 1, 9}, Sanet());
  ExpectAgreement({"blocks.0", Module::kBase, 6, 16, 16, 2, 9}, Sanet());
}

TEST(MobileModule, InvertedResidualAgrees) {
  ExpectAgreement({"blocks.0", Module::kPlain, 6, 16, 16, 1, 9}, Sanet());
  ExpectAgreement({"blocks.0", Module::kPlain, 6, 16, 24, 2, 9}, Sanet());
}

TEST(MobileModule, WithoutExpansionTheyAreTheSame) {
  ExpectAgreement({"blocks.0", Module::kBase, 1, 16, 8, 1, 9}, Sanet());
  ExpectAgreement({"blocks.0", Module::kPlain, 1, 16, 8, 1, 9}, Sanet());
}

TEST(MobileModule, SiameseVariantsAgree) {
  const Block block{"blocks.0", Module::kAttention, 6, 16, 16, 1, 8};
  ExpectAgreement(block, Sanet({{"global_term", "false"}}));
  ExpectAgreement(block, Sanet({{"similarity", "ones"}}));
}

// What one kernel computes is quantized together, or not at all.
TEST(MobileModule, ItsConvolutionsAreJoinedForQuantizing) {
  const std::vector<std::string> filtered = {"f/blocks.0.depthwise.conv.weight",
                                             "f/blocks.0.project.conv.weight"};
  std::vector<std::string> expanded = filtered;
  expanded.insert(expanded.begin(), "f/blocks.0.expand.conv.weight");
  const MobileOptions expatt = ParseMobileOptions("expatt_mobilenetv2", {});
  const std::tuple<Block, MobileOptions, std::vector<std::string>> modules[] = {
      {{"blocks.0", Module::kPlain, 6, 16, 16, 1, 9}, Sanet(), expanded},
      {{"blocks.0", Module::kPlain, 1, 16, 16, 1, 9}, Sanet(), filtered},
      {{"blocks.0", Module::kBase, 6, 16, 16, 2, 9}, Sanet(), expanded},
      {{"blocks.0", Module::kAttention, 6, 16, 16, 1, 8}, Sanet(), expanded},
      {{"blocks.0", Module::kPlain, 6, 24, 32, 1, 9, /*attended=*/8}, expatt, expanded}};
  for (const auto& [block, options, names] : modules) {
    TensorMap tensors = Tensors(block, options);
    std::map<std::string, std::string> file_names;
    for (const auto& [name, tensor] : tensors) file_names[name] = "f/" + name;
    tensors.file_names = std::make_shared<const std::map<std::string, std::string>>(std::move(file_names));
    Calibration calibration;
    tensors.target.calibration = &calibration;
    const MobileModule module(block, options, tensors);
    std::vector<std::string> joined;
    for (const CalibratedUnit& unit : calibration.units()) {
      if (unit.module.empty()) continue;
      EXPECT_EQ(unit.module, "blocks.0");
      for (const auto& layer : unit.layers) joined.push_back(layer->file_name());
    }
    EXPECT_EQ(joined, names);
  }
}

// The module in 8 bits, with grids that hold most of the numbers.
class Int8Module : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kernels::Int8InvertedResidual::Supports(/*inputs=*/16)) {
      GTEST_SKIP() << "this processor does not have AVX-512 VNNI";
    }
    at::manual_seed(5);
  }

  // The grid of the module's input and result. As in a weights file, its scale is a float32.
  static constexpr Grid kEnds{12.0F / 255, 128};

  // `filtered` and `projected` are the zero points of what the filter and the projection read.
  static TensorMap Quantize(const TensorMap& from, double filtered, double projected) {
    TensorMap tensors;
    for (const auto& [name, tensor] : from) {
      if (!name.ends_with(".conv.weight")) {
        tensors[name] = tensor;
        continue;
      }
      const std::string layer = name.substr(0, name.size() - std::string(".weight").size());
      const Int8Weight weight = QuantizedWeight(tensor);
      tensors[name] = weight.values;
      tensors[layer + kScaleSuffix] = weight.scale.to(at::kFloat);
      const std::vector<double> read{9.0 / 255, filtered};
      const std::vector<double> made{9.0 / 255, projected};
      const std::vector<double> ends{kEnds.scale, static_cast<double>(kEnds.zero)};
      const bool expands = name.find("expand") != std::string::npos;
      const bool filters = name.find("depthwise") != std::string::npos;
      const auto& before = expands ? ends : filters ? read : made;
      const auto& after = expands ? read : filters ? made : ends;
      tensors[layer + kGridsSuffix] = at::tensor({before[0], before[1], after[0], after[1]}, at::kFloat);
    }
    tensors.target.precision = Precision::kInt8;
    return tensors;
  }

  static at::Tensor Input(const Block& block, int64_t height, int64_t width) {
    return Quantized(at::randn({2, block.inputs, height, width}).contiguous(at::MemoryFormat::ChannelsLast),
                     kEnds);
  }

  // The three convolutions of oneDNN, one after the other.
  static at::Tensor ByConvolutions(const Block& block, const TensorMap& tensors, const at::Tensor& input) {
    at::Tensor x = input;
    if (block.expanded() > 0) {
      x = MakeConvolution(tensors, ExpandName(block) + ".",
                          {.activation = Activation::kRelu6, .stays_int8 = true})(x);
    }
    x = MakeConvolution(tensors, block.name + ".depthwise.",
                        {.stride = block.stride,
                         .groups = block.filtered(),
                         .activation = Activation::kRelu6,
                         .stays_int8 = true})(x);
    const Convolution project = MakeConvolution(tensors, block.name + ".project.",
                                                {.activation = Activation::kNone, .stays_int8 = true});
    return block.skip() ? project.WithSum(x, input) : project(x);
  }
};

TEST_F(Int8Module, IsTheThreeConvolutionsBitForBit) {
  for (const Block& block : {Block{"blocks.0", Module::kPlain, 6, 16, 16, 1, 9},
                             Block{"blocks.0", Module::kPlain, 6, 24, 40, 2, 9},
                             Block{"blocks.0", Module::kPlain, 6, 160, 160, 1, 7},
                             Block{"blocks.0", Module::kPlain, 6, 12, 20, 2, 9},
                             Block{"blocks.0", Module::kPlain, 1, 32, 16, 1, 9}}) {
    const TensorMap plain = Tensors(block, Sanet());
    for (const double filtered : {0.0, 31.0}) {
      for (const double projected : {0.0, 40.0}) {
        const TensorMap tensors = Quantize(plain, filtered, projected);
        const MobileModule module(block, Sanet(), tensors);
        for (const auto& [height, width] : {std::pair<int64_t, int64_t>{9, 11}, {1, 13}, {28, 29}}) {
          const at::Tensor x = Input(block, height, width);
          ASSERT_TRUE(module.IsFusedFor(x));
          const at::Tensor expected = ByConvolutions(block, tensors, x);
          const at::Tensor got = module(x);
          ASSERT_TRUE(got.is_quantized());
          EXPECT_EQ(got.q_scale(), expected.q_scale());
          EXPECT_EQ(got.q_zero_point(), expected.q_zero_point());
          EXPECT_EQ(BytesOf(got).ne(BytesOf(expected)).sum().item<int64_t>(), 0)
              << block.inputs << " inputs, stride " << block.stride << ", zeros " << filtered << " and "
              << projected << ", " << height << "x" << width;
        }
      }
    }
  }
}

// Between its layers there are floats that are rounded to bytes: once in the kernel, to bfloat16 as well if
// the layers are computed one after the other, as they are for an input of floats.
TEST_F(Int8Module, WithFloatsBesideTheBytesTheErrorIsAtMostATenthLarger) {
  const MobileOptions expatt = ParseMobileOptions("expatt_mobilenetv2", {});
  const std::pair<Block, MobileOptions> modules[] = {
      {{"blocks.0", Module::kBase, 6, 16, 24, 1, 9}, Sanet()},
      {{"blocks.0", Module::kBase, 6, 16, 24, 2, 9}, Sanet()},
      {{"blocks.0", Module::kBase, 6, 16, 16, 1, 9}, Sanet()},
      {{"blocks.0", Module::kBase, 1, 16, 24, 1, 9}, Sanet()},
      {{"blocks.0", Module::kAttention, 6, 16, 24, 1, 8}, Sanet()},
      {{"blocks.0", Module::kAttention, 6, 16, 24, 2, 8}, Sanet()},
      {{"blocks.0", Module::kAttention, 6, 16, 16, 1, 8}, Sanet()},
      {{"blocks.0", Module::kPlain, 6, 24, 32, 1, 9, /*attended=*/8}, expatt},
      {{"blocks.0", Module::kPlain, 6, 24, 32, 2, 9, /*attended=*/8}, expatt},
      {{"blocks.0", Module::kPlain, 6, 24, 24, 1, 9, /*attended=*/8}, expatt}};
  for (const auto& [block, options] : modules) {
    SCOPED_TRACE(::testing::Message()
                 << "module " << static_cast<int>(block.module) << ", expansion " << block.expansion
                 << ", outputs " << block.outputs << ", stride " << block.stride);
    const TensorMap plain = Tensors(block, options);
    const MobileModule module(block, options, Quantize(plain, 85, 85));
    const at::Tensor x = Input(block, block.size, block.size + 2);
    const at::Tensor floats = x.dequantize();
    ASSERT_TRUE(module.IsFusedFor(x));
    ASSERT_FALSE(module.IsFusedFor(floats));
    const at::Tensor exact = MobileModule(block, options, plain)(floats).to(at::kDouble);
    const auto error = [&](const at::Tensor& y) {
      return Floats(y, at::kDouble).sub(exact).norm().item<double>() / exact.norm().item<double>();
    };
    // With a skip, layers that get floats return floats.
    const at::Tensor y = module(floats);
    const double by_layers = error(y.is_quantized() ? y : Quantized(y, kEnds));
    EXPECT_LT(by_layers, 0.15);
    EXPECT_LT(error(module(x)), 1.1 * by_layers);
  }
}

struct Variant {
  const char* architecture;
  const char* attention;
};

class AttnModule : public ::testing::TestWithParam<Variant> {};

TEST_P(AttnModule, Agrees) {
  at::manual_seed(2);
  for (const char* heads : {"1", "4"}) {
    const MobileOptions options =
        ParseMobileOptions(GetParam().architecture, {{"attention", GetParam().attention}, {"heads", heads}});
    ExpectAgreement({"blocks.0", Module::kAttention, 6, 16, 16, 1, 9}, options);
    ExpectAgreement({"blocks.0", Module::kAttention, 6, 16, 24, 1, 7}, options);
    // A module with a stride pools and has no skips.
    ExpectAgreement({"blocks.0", Module::kAttention, 6, 16, 16, 2, 8}, options);
    ExpectAgreement({"blocks.0", Module::kAttention, 6, 16, 16, 2, 9}, options);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, AttnModule,
                         ::testing::Values(Variant{"sanet", "sao"}, Variant{"attnnet", "on"},
                                           Variant{"attnnet_pool", "on"}, Variant{"attnnet_1n", "on"},
                                           Variant{"kanet_kv", "kao"}, Variant{"kanet_qkv", "kao"},
                                           Variant{"mobilenetv2_sao", "sao"},
                                           Variant{"mobilenetv2_kao", "kv"},
                                           Variant{"mobilenetv2_kao", "qkv"}),
                         [](const auto& variant) {
                           return std::string(variant.param.architecture) + "_" + variant.param.attention;
                         });

}  // namespace
}  // namespace saccade::models
