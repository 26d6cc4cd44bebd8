#include "models/described/described_model.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "models/programs/testing/scripts.h"

namespace saccade::models {
namespace {

class DescribedModelTest : public testing::ScriptTest {
 protected:
  // The largest picture at load is 64 x 64.
  std::unique_ptr<Model> Make(const std::string& script, const std::string& head) {
    PictureProgram pictures =
        ReadDescription(R"({"input": {"resize": "longer", "size": 64}, "head": {"kind": ")" + head + "\"}}");
    auto program = Load(script, SignatureOf(pictures));
    return MakeDescribedModel(std::move(program), std::move(pictures), {});
  }

  static TaskResult ResultFor(const Model& model, Size sent) {
    const Placement placement = PlacementOf(model.description().input, sent);
    const Size size = placement.bucket;
    return model.Run({.pixels = at::zeros({1, 3, size.height, size.width}), .placements = {placement}}).at(0);
  }
};

// One value for each column of the picture.
constexpr const char* kColumns = R"(
def forward(self, pixels):
    return pixels.mean([1, 2])
)";

constexpr const char* kMaps = R"(
def forward(self, pixels):
    return pixels.permute([0, 3, 1, 2])
)";

TEST_F(DescribedModelTest, TheNumberOfClassesDependsOnNoPicture) {
  const auto classifier = Make(kColumns, "classes");
  EXPECT_EQ(classifier->description().classes, 64);
  EXPECT_EQ(std::get<Classification>(ResultFor(*classifier, {32, 64})).logits.size(), 64u);
  const TaskResult narrow = ResultFor(*classifier, {64, 32});
  EXPECT_EQ(std::get<Failure>(narrow).message,
            "the program's outputs have 32 classes for this picture, but the model has 64; expected the same "
            "number for pictures of all sizes");
  EXPECT_TRUE(std::holds_alternative<Classification>(ResultFor(*classifier, {64, 64})));

  const auto segmenter = Make(kMaps, "semantic");
  EXPECT_EQ(std::get<Segmentation>(ResultFor(*segmenter, {32, 64})).areas.size(), 64u);
  EXPECT_TRUE(std::holds_alternative<Failure>(ResultFor(*segmenter, {64, 32})));
}

TEST_F(DescribedModelTest, TheLengthOfAnEmbeddingMayDependOnThePicture) {
  const auto model = Make(kColumns, "embedding");
  EXPECT_EQ(std::get<Embedding>(ResultFor(*model, {32, 64})).values.size(), 64u);
  EXPECT_EQ(std::get<Embedding>(ResultFor(*model, {64, 32})).values.size(), 32u);
}

TEST_F(DescribedModelTest, AProgramNeverSeesAPictureThatIsNotFinite) {
  const auto model = Make(R"(
def forward(self, pixels):
    assert not bool(pixels.isnan().any()), "not a number"
    return pixels.mean([1, 2])
)",
                          "classes");
  const Placement placement = PlacementOf(model->description().input, {64, 64});
  const at::Tensor pixels = at::full({3, 3, 64, 64}, 2.0F);
  pixels[1][2][63][63] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<TaskResult> results =
      model->Run({.pixels = pixels, .placements = {placement, placement, placement}});
  EXPECT_TRUE(std::get<Failure>(results.at(1)).of_input);
  for (const size_t other : {0, 2}) EXPECT_EQ(std::get<Classification>(results.at(other)).logits[63], 2);
  EXPECT_TRUE(std::isnan(pixels[1][2][63][63].item<float>())) << "the sender's own memory stays as it is";
}

// The sides of YOLOX's boxes are logarithms: exp(100) is beyond float32.
TEST_F(DescribedModelTest, ABoxThatOverflowsIsAFailureWhateverItsScore) {
  PictureProgram pictures = ReadDescription(
      R"({"input": {"resize": "longer", "size": 64}, "head": {"kind": "grid", "order": "rows", "strides": [32]}})");
  auto program = Load(R"(
def forward(self, pixels):
    rows = torch.zeros([pixels.size(0), 4, 6])
    rows[:, 3, 2] = 100.0 * pixels.amax([1, 2, 3])
    return rows
)",
                      SignatureOf(pictures));
  const auto model = MakeDescribedModel(std::move(program), std::move(pictures), {});
  const Placement placement = PlacementOf(model->description().input, {64, 64});
  const at::Tensor pixels = at::zeros({2, 3, 64, 64});
  pixels[1].fill_(1);
  const std::vector<TaskResult> results =
      model->Run({.pixels = pixels, .placements = {placement, placement}});
  EXPECT_TRUE(std::get<Detections>(results.at(0)).items.empty());
  EXPECT_EQ(
      std::get<Failure>(results.at(1)).message,
      "the program computed a side of a box that is not finite, although the input is finite; its values "
      "may be too large for the network");
  EXPECT_FALSE(std::get<Failure>(results[1]).of_input);
}

// A detector that takes one picture alone, and finds as many boxes as its first value says.
class OneByOne : public TensorProgram {
 public:
  explicit OneByOne(Signature signature) : signature_(std::move(signature)) {}

  const Signature& signature() const override { return signature_; }
  const std::vector<std::string>& notes() const override { return notes_; }
  bool takes_one_row() const override { return true; }

  std::vector<Value> Run(std::vector<Value> inputs) const override {
    const at::Tensor pixels = inputs.at(0).toTensor();
    EXPECT_EQ(pixels.size(0), 1);
    const auto found = static_cast<int64_t>(pixels[0][0][0][0].item<float>());
    at::Tensor boxes = at::zeros({1, found, 4});
    for (int64_t i = 0; i < found; ++i) {
      boxes[0][i][0] = static_cast<float>(i);
      boxes[0][i][2] = static_cast<float>(i + 1);
      boxes[0][i][3] = 1;
    }
    return {boxes, at::full({1, found, 2}, 0.75F)};
  }

 private:
  const Signature signature_;
  const std::vector<std::string> notes_;
};

TEST_F(DescribedModelTest, APictureOfABatchMayHaveAnotherNumberOfBoxes) {
  PictureProgram pictures = ReadDescription(
      R"({"input": {"resize": "longer", "size": 64}, "head": {"kind": "boxes"},
          "outputs": {"boxes": "b", "scores": "s"}, "labels": ["cat", "dog"]})");
  auto program = std::make_unique<OneByOne>(SignatureOf(pictures));
  const auto model = MakeDescribedModel(std::move(program), std::move(pictures), {});
  const Placement placement = PlacementOf(model->description().input, {64, 64});
  at::Tensor pixels = at::zeros({3, 3, 64, 64});
  pixels[0].fill_(3);
  pixels[2].fill_(5);
  const std::vector<TaskResult> results =
      model->Run({.pixels = pixels, .placements = {placement, placement, placement}});
  // Each box has a score for both classes.
  EXPECT_EQ(std::get<Detections>(results.at(0)).items.size(), 6U);
  EXPECT_EQ(std::get<Detections>(results.at(1)).items.size(), 0U);
  EXPECT_EQ(std::get<Detections>(results.at(2)).items.size(), 10U);
}

}  // namespace
}  // namespace saccade::models
