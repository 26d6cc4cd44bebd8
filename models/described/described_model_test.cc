#include "models/described/described_model.h"

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <variant>

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

}  // namespace
}  // namespace saccade::models
