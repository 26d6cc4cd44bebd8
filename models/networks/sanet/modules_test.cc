#include "models/networks/sanet/modules.h"

#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "models/networks/sanet/parameters.h"
#include "models/testing/random_weights.h"

namespace saccade::models {
namespace {

// The module straight from section 3.3 of the paper, in fp64 and unfolded.
class Oracle {
 public:
  Oracle(const Block& block, bool global_term, const TensorMap& tensors)
      : block_(block), global_term_(global_term), tensors_(tensors) {}

  at::Tensor operator()(const at::Tensor& x) const {
    at::Tensor y = block_.expansion > 1 ? ConvBn(x, "expand", 1, 1).clamp(0, 6) : x;
    if (block_.module == Module::kBase && block_.expansion > 1) y = at::cat({y, x}, 1);
    y = ConvBn(y, "depthwise", block_.stride, y.size(1)).clamp(0, 6);
    if (block_.module == Module::kAttention) y = at::cat({y, Attention(x)}, 1);
    y = ConvBn(y, "project", 1, 1);
    return block_.skip() ? y.add(x) : y;
  }

 private:
  at::Tensor Get(const std::string& name) const {
    return tensors_.at(block_.name + "." + name).to(at::kDouble);
  }

  at::Tensor BatchNorm(const at::Tensor& x, const std::string& layer) const {
    const auto channel = [&](const char* part) { return Get(layer + ".bn." + part).view({1, -1, 1, 1}); };
    return x.sub(channel("running_mean"))
        .div(channel("running_var").add(1e-5).sqrt())
        .mul(channel("weight"))
        .add(channel("bias"));
  }

  at::Tensor ConvBn(const at::Tensor& x, const std::string& layer, int64_t stride, int64_t groups) const {
    const at::Tensor weight = Get(layer + ".conv.weight");
    return BatchNorm(at::conv2d(x, weight, {}, stride, weight.size(2) / 2, 1, groups), layer);
  }

  // Every pair of positions, as equation 5 writes it.
  at::Tensor Attention(const at::Tensor& x) const {
    const int64_t positions = x.size(2) * x.size(3);
    const at::Tensor flat = x.reshape({x.size(0), kSanetHeads, -1, positions});
    const at::Tensor value =
        at::einsum("oc,bcn->bon", {Get("attention.value.weight"), x.flatten(2)}).view(flat.sizes());
    const at::Tensor score = at::einsum("bhcn,hc->bhn", {flat, Get("attention.w").view({kSanetHeads, -1})});
    at::Tensor similarity = score.unsqueeze(3).expand({-1, -1, -1, positions});  // [query, key]
    if (global_term_) similarity = similarity.add(score.unsqueeze(2));
    const at::Tensor response = at::einsum("bhck,bhqk->bhcq", {value, similarity}).reshape(x.sizes());
    const at::Tensor y = BatchNorm(response, "attention");
    if (block_.stride == 1) return y.add(x);
    return at::avg_pool2d(y, block_.stride, block_.stride, 0, true, false);
  }

  const Block& block_;
  bool global_term_;
  const TensorMap& tensors_;
};

TensorMap Tensors(const Block& block) {
  SanetPlan plan = MakeSanetPlan({});
  plan.blocks = {block};
  return testing::RandomTensors(SanetParameters(plan));
}

void ExpectAgreement(const Block& block, bool global_term = true) {
  const TensorMap tensors = Tensors(block);
  const at::Tensor x = at::randn({2, block.inputs, block.size, block.size + 2});
  const at::Tensor expected = Oracle(block, global_term, tensors)(x.to(at::kDouble));
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
