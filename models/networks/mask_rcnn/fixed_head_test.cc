// Compares the heads of fixed shapes with those of the host, on the CPU.
#include "models/networks/mask_rcnn/fixed_head.h"

#include <ATen/Context.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <set>
#include <string>

#include "models/networks/mask_rcnn/proposals.h"
#include "models/networks/mask_rcnn/tensors.h"
#include "models/networks/mask_rcnn/testing/networks.h"

namespace saccade::models {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;

constexpr auto kR50 = "ea_mask_rcnn_r50";
constexpr Size kBucket{64, 96};
constexpr Target kReplayed{.replay_on_cpu = true};
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

MaskRcnnOptions Narrow(const Options& more = {}) {
  return ParseMaskRcnnOptions(kR50, testing::NarrowMaskRcnn(more));
}

// Maps of the paper's four levels, with these channels, for pictures of these sizes in kBucket.
std::vector<FeatureMap> RandomMaps(const std::vector<Size>& sizes, int64_t channels, double factor = 1) {
  std::vector<FeatureMap> maps;
  Extents extents(sizes);
  for (int64_t stride = 4; stride <= 32; stride *= 2) {
    std::vector<Size> own;
    for (const Size size : sizes)
      own.push_back({(size.height + stride - 1) / stride, (size.width + stride - 1) / stride});
    maps.push_back({at::randn({static_cast<int64_t>(sizes.size()), channels, kBucket.height / stride,
                               kBucket.width / stride})
                        .mul(factor)
                        .contiguous(at::MemoryFormat::ChannelsLast),
                    Extents(own)});
  }
  return maps;
}

FeatureMap Pictures(const std::vector<Size>& sizes) {
  return {at::zeros({static_cast<int64_t>(sizes.size()), 3, kBucket.height, kBucket.width}), Extents(sizes)};
}

Placement PlacedAs(Size size) { return {size, size, kBucket}; }

// What the host proposes for each picture; nothing for a picture whose numbers are not finite.
std::vector<at::Tensor> ProposedByHost(const std::vector<FeatureMap>& numbers, const std::vector<Size>& sizes,
                                       const MaskRcnnOptions& options) {
  std::vector<at::Tensor> proposed;
  const auto all = ChooseCandidates(numbers, options.proposals, options.exact, /*on_device=*/true);
  for (size_t i = 0; i < sizes.size(); ++i)
    proposed.push_back(all[i].finite ? Propose(all[i].levels, PlacedAs(sizes[i]), options)
                                     : at::empty({0, 4}));
  return proposed;
}

std::vector<FixedRegions> ProposedFixed(const std::vector<FeatureMap>& numbers,
                                        const std::vector<Size>& sizes, const MaskRcnnOptions& options) {
  const BoxConstants constants = MakeBoxConstants(4, at::kCPU);
  const FixedCandidates candidates = GatherCandidates(numbers, kBucket, options, constants);
  const at::Tensor bounds = BoundsOf(Extents(sizes).AsValid());
  std::vector<FixedRegions> proposed;
  for (int64_t i = 0; i < static_cast<int64_t>(sizes.size()); ++i)
    proposed.push_back(ProposeFixed(candidates.Of(i), bounds[i], options, constants));
  return proposed;
}

// Returns the number of boxes; the others have to be zero.
int64_t CountOf(const at::Tensor& boxes, const at::Tensor& valid) {
  const int64_t count = valid.sum().item<int64_t>();
  EXPECT_TRUE(valid.narrow(0, 0, count).all().item<bool>()) << "boxes come before padding";
  EXPECT_TRUE(boxes.narrow(0, count, boxes.size(0) - count).eq(0).all().item<bool>());
  return count;
}

void ExpectProposed(const std::vector<FeatureMap>& numbers, const std::vector<Size>& sizes,
                    const MaskRcnnOptions& options) {
  const auto host = ProposedByHost(numbers, sizes, options);
  const auto fixed = ProposedFixed(numbers, sizes, options);
  for (size_t i = 0; i < host.size(); ++i) {
    ASSERT_EQ(CountOf(fixed[i].boxes, fixed[i].valid), host[i].size(0)) << "picture " << i;
    EXPECT_TRUE(fixed[i].boxes.narrow(0, 0, host[i].size(0)).allclose(host[i], 1e-5, 1e-4));
  }
}

class FixedBoxesTest : public ::testing::Test {
 protected:
  void SetUp() override { at::manual_seed(5); }

  const std::vector<Size> sizes_ = {{64, 96}, {33, 96}, {64, 17}, {1, 1}};
};

TEST_F(FixedBoxesTest, ProposesWhatTheHostProposes) {
  for (const char* exact : {"false", "true"}) {
    for (const char* proposals : {"1", "40", "1000"}) {
      const MaskRcnnOptions options = Narrow({{"exact", exact}, {"proposals", proposals}});
      // Boxes near their anchors; boxes of all sizes, most of them cut by the picture's sides or outside.
      for (const double factor : {0.3, 3.0})
        ExpectProposed(RandomMaps(sizes_, kProposalOutputs, factor), sizes_, options);
    }
  }
}

TEST_F(FixedBoxesTest, OfEqualBoxesAndLogitsItProposesTheHosts) {
  const MaskRcnnOptions options = Narrow();
  for (const float logit : {0.0F, -0.0F, 100.0F, -200.0F}) {
    auto numbers = RandomMaps(sizes_, kProposalOutputs, 0);
    for (const FeatureMap& level : numbers) level.values.narrow(1, 0, 2).fill_(logit);
    ExpectProposed(numbers, sizes_, options);
    // As large as the picture, whichever anchor they come from.
    for (const FeatureMap& level : numbers) level.values.narrow(1, kAspectRatios, 12).fill_(1000);
    for (const FeatureMap& level : numbers) {
      for (int64_t ratio = 0; ratio < kAspectRatios; ++ratio)
        level.values.narrow(1, kAspectRatios + 4 * ratio, 2).fill_(0);
    }
    ExpectProposed(numbers, sizes_, options);
  }
}

TEST_F(FixedBoxesTest, NoBoxInThePictureIsNoProposal) {
  auto numbers = RandomMaps(sizes_, kProposalOutputs, 0.1);
  for (const FeatureMap& level : numbers) level.values.narrow(1, kAspectRatios, 12).fill_(-50);
  ExpectProposed(numbers, sizes_, Narrow());
  for (const FixedRegions& regions : ProposedFixed(numbers, sizes_, Narrow()))
    EXPECT_EQ(CountOf(regions.boxes, regions.valid), 0);
}

TEST_F(FixedBoxesTest, APictureWhoseNumbersAreNotFiniteHasNoProposal) {
  const auto numbers = RandomMaps(sizes_, kProposalOutputs);
  const auto clean = ProposedFixed(numbers, sizes_, Narrow());
  for (const float bad : {kNaN, std::numeric_limits<float>::infinity()}) {
    for (const int64_t channel : {int64_t{0}, kProposalOutputs - 1}) {
      auto damaged = numbers;
      damaged[2].values = numbers[2].values.clone();
      damaged[2].values[1][channel][1][2].fill_(bad);
      const auto got = ProposedFixed(damaged, sizes_, Narrow());
      EXPECT_EQ(CountOf(got[1].boxes, got[1].valid), 0);
      for (const size_t other : {0, 2, 3}) EXPECT_TRUE(got[other].boxes.equal(clean[other].boxes));
    }
  }
}

// Proposals in a picture of kBucket, of which the last ten are padding.
FixedRegions RandomRegions(int64_t count) {
  const at::Tensor low = at::rand({count, 2}).mul(50);
  FixedRegions regions{at::cat({low, low.add(at::rand({count, 2}).mul(40))}, 1),
                       at::ones({count}, at::kBool)};
  regions.valid.narrow(0, count - 10, 10).fill_(false);
  regions.boxes.narrow(0, count - 10, 10).zero_();
  return regions;
}

BoxNumbers RandomNumbers(int64_t count, int64_t classes) {
  return {at::softmax(at::randn({count, classes}).mul(2), 1), at::randn({count, 4 * classes})};
}

// Returns whether the detections were complete.
bool ExpectDetected(const BoxNumbers& numbers, const FixedRegions& regions, const MaskRcnnOptions& options) {
  const int64_t valid = regions.valid.sum().item<int64_t>();
  const Found host = Detect(
      {numbers.scores.narrow(0, 0, valid).contiguous(), numbers.deltas.narrow(0, 0, valid).contiguous()},
      regions.boxes.narrow(0, 0, valid).contiguous(), kBucket, options);
  const at::Tensor bounds = BoundsOf(Extents({kBucket}).AsValid())[0];
  const FixedFound found = DetectFixed(numbers, regions, bounds, options, MakeBoxConstants(4, at::kCPU));
  const int64_t count = CountOf(found.boxes, found.valid);
  EXPECT_EQ(count, static_cast<int64_t>(host.boxes.size()));
  if (count != static_cast<int64_t>(host.boxes.size())) return false;
  EXPECT_TRUE(found.boxes.narrow(0, 0, count).allclose(AsTensor(host.boxes), 1e-5, 1e-4));
  EXPECT_TRUE(found.scores.narrow(0, 0, count).equal(AsTensor(host.scores)));
  EXPECT_TRUE(found.labels.narrow(0, 0, count).equal(AsTensor(host.labels)));
  EXPECT_EQ(found.boxes.size(0), std::min(options.detections, regions.boxes.size(0) * (options.classes - 1)));
  return found.complete.item<bool>();
}

TEST_F(FixedBoxesTest, DetectsWhatTheHostDetects) {
  for (const char* detections : {"1", "30", "1000"}) {
    for (const char* threshold : {"0", "0.05", "0.5", "1"}) {
      const MaskRcnnOptions options =
          Narrow({{"classes", "7"}, {"detections", detections}, {"score_threshold", threshold}});
      EXPECT_TRUE(ExpectDetected(RandomNumbers(60, 7), RandomRegions(60), options));
    }
  }
}

TEST_F(FixedBoxesTest, OfEqualScoresAndBoxesItDetectsTheHosts) {
  const MaskRcnnOptions options = Narrow();
  FixedRegions regions = RandomRegions(60);
  const BoxNumbers equal{at::full({60, 4}, 0.25), at::zeros({60, 16})};
  EXPECT_TRUE(ExpectDetected(equal, regions, options));
  regions.boxes.narrow(0, 0, 50).copy_(at::tensor({3.0F, 4.0F, 30.0F, 40.0F}));
  EXPECT_TRUE(ExpectDetected(equal, regions, options));
  // Too small.
  regions.boxes.narrow(0, 0, 50).copy_(at::tensor({3.0F, 4.0F, 3.001F, 40.0F}));
  EXPECT_TRUE(ExpectDetected(equal, regions, options));
  regions.valid.fill_(false);
  regions.boxes.zero_();
  EXPECT_TRUE(ExpectDetected(equal, regions, options));
}

TEST_F(FixedBoxesTest, TellsWhetherThereMayBeMoreDetections) {
  constexpr int64_t kRegions = 2000;
  FixedRegions regions = RandomRegions(kRegions);
  regions.boxes.narrow(0, 0, kRegions - 10).copy_(at::tensor({3.0F, 4.0F, 30.0F, 40.0F}));
  // The best 4096 of 5970 equal boxes are looked at; one is left for each of three classes.
  const BoxNumbers equal{at::full({kRegions, 4}, 0.25), at::zeros({kRegions, 16})};
  EXPECT_FALSE(ExpectDetected(equal, regions, Narrow({{"detections", "4"}})));
  EXPECT_TRUE(ExpectDetected(equal, regions, Narrow({{"detections", "3"}}))) << "as many as asked for";
  EXPECT_TRUE(ExpectDetected(equal, regions, Narrow({{"detections", "800"}}))) << "all are looked at";
  // Few are above the threshold.
  const BoxNumbers various = RandomNumbers(kRegions, 4);
  EXPECT_TRUE(ExpectDetected(various, regions, Narrow({{"detections", "10"}, {"score_threshold", "0.9"}})));
}

TEST_F(FixedBoxesTest, ANumberThatIsNotFiniteIsNotFound) {
  const FixedRegions regions = RandomRegions(60);
  BoxNumbers numbers = RandomNumbers(60, 4);
  numbers.scores[3].fill_(kNaN);
  numbers.deltas[4].fill_(kNaN);
  const at::Tensor bounds = BoundsOf(Extents({kBucket}).AsValid())[0];
  const FixedFound found = DetectFixed(numbers, regions, bounds, Narrow(), MakeBoxConstants(4, at::kCPU));
  EXPECT_GT(CountOf(found.boxes, found.valid), 0);
  EXPECT_FALSE(found.boxes.isnan().any().item<bool>() || found.scores.isnan().any().item<bool>());
}

// The heads with random weights, and both ways through them.
class FixedHeadTest : public ::testing::Test {
 protected:
  void SetUp() override { at::manual_seed(11); }

  struct Heads {
    explicit Heads(const Options& more) : options(testing::NarrowMaskRcnn(more)) {
      TensorMap tensors = testing::MaskRcnnTensors(kR50, options);
      tensors.target = kReplayed;
      table = MakeMaskRcnnTable(kR50, ParseMaskRcnnOptions(kR50, options));
      boxes = std::make_unique<BoxHead>(table, tensors);
      masks = std::make_unique<MaskHead>(tensors);
      fixed = std::make_unique<FixedHead>(table, *boxes, *masks, kReplayed);
    }
    Options options;
    MaskRcnnTable table;
    std::unique_ptr<BoxHead> boxes;
    std::unique_ptr<MaskHead> masks;
    std::unique_ptr<FixedHead> fixed;
  };

  // The found boxes and the masks' logits of a picture.
  static std::pair<Found, at::Tensor> ByHost(const Heads& heads, const std::vector<FeatureMap>& levels,
                                             const at::Tensor& proposed, int64_t picture, Size size) {
    if (proposed.size(0) == 0) return {};
    const MaskRcnnOptions& options = heads.table.options;
    const RegionFeatures features = FeaturesOf(levels, picture, options.exact);
    const Found found = Detect((*heads.boxes)(Pool(features, proposed, kBoxSide)), proposed, size, options);
    if (found.boxes.empty()) return {};
    return {found, (*heads.masks)(Pool(features, AsTensor(found.boxes), kMaskSide), found.labels)};
  }

  const std::vector<Size> sizes_ = {{64, 96}, {33, 96}, {64, 17}};
};

std::vector<FeatureMap> Part(const std::vector<FeatureMap>& maps, int64_t picture) {
  std::vector<FeatureMap> part;
  for (const FeatureMap& map : maps)
    part.push_back({map.values.narrow(0, picture, 1), Extents({map.extents[picture]})});
  return part;
}

TEST_F(FixedHeadTest, FindsWhatTheHostFinds) {
  for (const Options& more :
       {Options{}, Options{{"exact", "true"}}, Options{{"detections", "3"}},
        Options{{"score_threshold", "1"}}, Options{{"proposals", "400"}, {"detections", "100"}}}) {
    const Heads heads(more);
    const auto levels = RandomMaps(sizes_, heads.table.channels);
    const auto numbers = RandomMaps(sizes_, kProposalOutputs, 0.3);
    const at::Tensor rows = (*heads.fixed)(levels, numbers, Pictures(sizes_));
    const auto proposed = ProposedByHost(numbers, sizes_, heads.table.options);
    for (size_t i = 0; i < sizes_.size(); ++i) {
      const auto [found, logits] = ByHost(heads, levels, proposed[i], static_cast<int64_t>(i), sizes_[i]);
      const FixedAnswer answer = ReadFixed(rows[static_cast<int64_t>(i)]);
      EXPECT_TRUE(answer.finite_proposals && answer.finite_boxes && answer.finite_masks && answer.complete);
      ASSERT_EQ(answer.found.boxes.size(), found.boxes.size());
      EXPECT_EQ(answer.found.labels, found.labels);
      if (found.boxes.empty()) continue;
      EXPECT_TRUE(AsTensor(answer.found.boxes).allclose(AsTensor(found.boxes), 1e-4, 1e-3));
      EXPECT_TRUE(AsTensor(answer.found.scores).allclose(AsTensor(found.scores), 1e-4, 1e-5));
      EXPECT_TRUE(answer.masks.allclose(logits.sigmoid(), 1e-3, 1e-4));
      EXPECT_TRUE(answer.masks.is_contiguous());
    }
  }
}

TEST_F(FixedHeadTest, AnAnswerDoesNotDependOnItsBatch) {
  for (const char* exact : {"false", "true"}) {
    const Heads heads(Options{{"exact", exact}});
    const auto levels = RandomMaps(sizes_, heads.table.channels);
    const auto numbers = RandomMaps(sizes_, kProposalOutputs, 0.3);
    const at::Tensor together = (*heads.fixed)(levels, numbers, Pictures(sizes_));
    EXPECT_GT(together.select(1, 0).min().item<float>(), 0) << "detections in each picture";
    for (int64_t i = 0; i < 3; ++i) {
      const std::vector<Size> size = {sizes_[static_cast<size_t>(i)]};
      const at::Tensor alone = (*heads.fixed)(Part(levels, i), Part(numbers, i), Pictures(size));
      EXPECT_TRUE(alone[0].equal(together[i])) << "picture " << i;
    }
    // NaN in one picture's maps leaves the others as they are.
    levels[0].values[1].fill_(kNaN);
    numbers[0].values[1].fill_(kNaN);
    const at::Tensor damaged = (*heads.fixed)(levels, numbers, Pictures(sizes_));
    EXPECT_FALSE(ReadFixed(damaged[1]).finite_proposals);
    EXPECT_TRUE(damaged[0].equal(together[0]));
    EXPECT_TRUE(damaged[2].equal(together[2]));
  }
}

TEST_F(FixedHeadTest, NumbersThatAreNotFiniteAreTold) {
  const Heads heads(Options{});
  const auto levels = RandomMaps(sizes_, heads.table.channels);
  const auto numbers = RandomMaps(sizes_, kProposalOutputs, 0.3);
  for (const FeatureMap& level : levels) level.values[2].fill_(kNaN);
  const at::Tensor rows = (*heads.fixed)(levels, numbers, Pictures(sizes_));
  EXPECT_TRUE(ReadFixed(rows[0]).finite_boxes);
  EXPECT_TRUE(ReadFixed(rows[2]).finite_proposals);
  EXPECT_FALSE(ReadFixed(rows[2]).finite_boxes);
}

TEST_F(FixedHeadTest, RefusesMoreCandidatesThanItCanCompare) {
  EXPECT_TRUE(FixedHead::Fits(MakeMaskRcnnTable(kR50, Narrow({{"proposals", "5000"}}))));
  EXPECT_FALSE(FixedHead::Fits(MakeMaskRcnnTable(kR50, Narrow({{"proposals", "5001"}}))));
}

// The names of the operators that the thread calls, with the overloads of some.
thread_local std::set<std::string>* g_called = nullptr;

std::unique_ptr<at::ObserverContext> NoteCall(const at::RecordFunction& call) {
  std::string name = call.name();
  const auto full = call.operator_name();
  if (name == "aten::where" && full && full->overload_name.starts_with("Scalar"))
    name += "." + full->overload_name;
  if (g_called != nullptr) g_called->insert(name);
  return nullptr;
}

// Returns which of the operators that `work` calls read a value on the host, have a shape that depends on
// values, or make a tensor of the host's numbers. Copies from the host to the device are not seen: on the
// CPU both are the same.
std::set<std::string> UnfitForRecording(const std::function<void()>& work) {
  std::set<std::string> called;
  g_called = &called;
  const auto handle =
      at::addThreadLocalCallback(at::RecordFunctionCallback(NoteCall).scopes({at::RecordScope::FUNCTION}));
  work();
  at::removeCallback(handle);
  g_called = nullptr;
  EXPECT_FALSE(called.empty()) << "nothing was observed";
  std::set<std::string> unfit;
  for (const char* name : {"aten::nonzero",
                           "aten::nonzero_numpy",
                           "aten::argwhere",
                           "aten::item",
                           "aten::_local_scalar_dense",
                           "aten::is_nonzero",
                           "aten::masked_select",
                           "aten::index",
                           "aten::index_put_",
                           "aten::equal",
                           "aten::allclose",
                           "aten::unique_consecutive",
                           "aten::_unique2",
                           "aten::repeat_interleave",
                           "aten::bincount",
                           "aten::where.ScalarOther",
                           "aten::where.ScalarSelf",
                           "aten::where.Scalar",
                           "aten::scalar_tensor",
                           "aten::lift_fresh"}) {
    if (called.contains(name)) unfit.insert(name);
  }
  return unfit;
}

TEST_F(FixedHeadTest, APassCanBeRecorded) {
  const c10::InferenceMode inference;
  for (const char* exact : {"false", "true"}) {
    const Heads heads(Options{{"exact", exact}});
    auto levels = RandomMaps(sizes_, heads.table.channels);
    auto numbers = RandomMaps(sizes_, kProposalOutputs, 0.3);
    FeatureMap pictures = Pictures(sizes_);
    // As in a recording.
    for (auto* maps : {&levels, &numbers}) {
      for (FeatureMap& map : *maps) map.extents = map.extents.With(map.extents.AsValid());
    }
    pictures.extents = pictures.extents.With(pictures.extents.AsValid());
    EXPECT_THAT(UnfitForRecording([&] { (*heads.fixed)(levels, numbers, pictures); }), IsEmpty());
  }
}

TEST_F(FixedHeadTest, TheObserverSeesWhatCannotBeRecorded) {
  const at::Tensor x = at::ones({3});
  EXPECT_THAT(UnfitForRecording([&] { at::nonzero(x); }), Contains("aten::nonzero"));
  EXPECT_THAT(UnfitForRecording([&] { x.sum().item<float>(); }), Contains("aten::_local_scalar_dense"));
  EXPECT_THAT(UnfitForRecording([&] { x.masked_select(x.gt(0)); }), Contains("aten::masked_select"));
  EXPECT_THAT(UnfitForRecording([&] { x.index({x.gt(0)}); }), Contains("aten::index"));
  EXPECT_THAT(UnfitForRecording([&] { at::where(x.gt(0), x, 1.0); }), Contains("aten::where.ScalarOther"));
}

}  // namespace
}  // namespace saccade::models
