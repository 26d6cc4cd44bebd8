#include "models/networks/sanet/modules.h"

#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "models/networks/sanet/parameters.h"
#include "models/testing/eager_sanet.h"
#include "models/testing/random_weights.h"

namespace saccade::models {
namespace {

TensorMap Tensors(const Block& block) {
  SanetPlan plan = MakeSanetPlan({});
  plan.blocks = {block};
  return testing::RandomTensors(SanetParameters(plan));
}

void ExpectAgreement(const Block& block, bool global_term = true) {
  const TensorMap tensors = Tensors(block);
  const at::Tensor x = at::randn({2, block.inputs, block.size, block.size + 2});
  TensorMap precise;
  for (const auto& [name, tensor] : tensors) precise[name] = tensor.to(at::kDouble);
  const at::Tensor expected = testing::EagerModule(block, global_term, precise, x.to(at::kDouble));
  const at::Tensor got =
      SanetModule(block, global_term, tensors)(x.contiguous(at::MemoryFormat::ChannelsLast));
  ASSERT_EQ(got.sizes(), expected.sizes());
  EXPECT_LT(got.to(at::kDouble).sub(expected).norm().item<double>() / expected.norm().item<double>(), 1e-5);
}

TEST(SanetModule, BaseModuleAgrees) {
  ExpectAgreement({"blocks.0", Module::kBase, 6, 16, 16, 1, 9});
  ExpectAgreement({"blocks.0", Module::kBase, 6, 16, 24, 1, 9});
  ExpectAgreement({"blocks.0", Module::kBase, 6, 16, 16, 2, 9});
}

TEST(SanetModule, BaseModuleWithoutExpansionAgrees) {
  ExpectAgreement({"blocks.0", Module::kBase, 1, 16, 8, 1, 9});
}

TEST(SanetModule, AttnModuleAgrees) {
  ExpectAgreement({"blocks.0", Module::kAttention, 6, 16, 16, 1, 9});
  ExpectAgreement({"blocks.0", Module::kAttention, 6, 16, 24, 1, 7});
  ExpectAgreement({"blocks.0", Module::kAttention, 6, 16, 16, 1, 8}, /*global_term=*/false);
}

TEST(SanetModule, StridedAttnModulePoolsAndHasNoSkips) {
  ExpectAgreement({"blocks.0", Module::kAttention, 6, 16, 16, 2, 8});
  ExpectAgreement({"blocks.0", Module::kAttention, 6, 16, 16, 2, 9});
}

}  // namespace
}  // namespace saccade::models
