#include "models/networks/mobile/modules.h"

#include <ATen/Context.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "models/networks/mobile/parameters.h"
#include "models/testing/eager_mobile.h"
#include "models/testing/random_weights.h"

namespace saccade::models {
namespace {

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
  const at::Tensor got = MobileModule(block, options, tensors)(x.contiguous(at::MemoryFormat::ChannelsLast));
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
