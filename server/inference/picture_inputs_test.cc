#include "server/inference/picture_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/core/bytes_elements.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The elements that all tests send.
constexpr std::string_view kElements[] = {"l0", "r0", "l1", "r1"};

TensorCall Bytes(std::vector<int64_t> shape, size_t elements) {
  TensorCall call;
  call.inputs.push_back({.name = "image",
                         .type = DataType::kBytes,
                         .shape = std::move(shape),
                         .data = JoinBytes(absl::MakeConstSpan(kElements, elements))});
  return call;
}

void ExpectInvalid(const TensorCall& call, const char* hint) {
  const absl::Status status = PicturesOf(call).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(hint));
}

TEST(PictureInputsTest, PicturesAreCountedBeforeTheyAreKept) {
  const std::string zeros(size_t{4} * 65537, '\0');
  TensorCall call;
  call.inputs.push_back(
      {.name = "image", .type = DataType::kBytes, .shape = {65537}, .data = BytePieces(zeros)});
  ExpectInvalid(call, "the shape of BYTES is [65537], more than 65536 pictures");
  call.inputs[0].shape = {32769, 2};
  ExpectInvalid(call, "more than 65536 pictures");
}

TEST(PictureInputsTest, AnElementAPicture) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{2}, {2, 1}}) {
    const TensorCall call = Bytes(shape, 2);
    const auto made = PicturesOf(call);
    ASSERT_TRUE(made.ok()) << made.status();
    const auto& pictures = std::get<std::vector<Picture>>(made->input);
    ASSERT_EQ(pictures.size(), 2u);
    EXPECT_EQ(made->views, 1);
    EXPECT_EQ(std::get<EncodedPicture>(pictures[1]).data.bytes, "r0");
  }
}

TEST(PictureInputsTest, TwoColumnsAreStereoPairs) {
  const TensorCall call = Bytes({2, 2}, 4);
  const auto made = PicturesOf(call);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->views, 2);
  EXPECT_EQ(std::get<std::vector<Picture>>(made->input).size(), 4u);
}

TEST(PictureInputsTest, FloatsStayWhereTheyAre) {
  const std::vector<float> floats(12);
  TensorCall call;
  call.inputs.push_back({.name = "image", .shape = {1, 3, 2, 2}, .data = absl::MakeConstSpan(floats)});
  const auto made = PicturesOf(call);
  ASSERT_TRUE(made.ok()) << made.status();
  const auto& tensor = std::get<TensorInput>(made->input);
  EXPECT_THAT(tensor.shape, ElementsAre(1, 3, 2, 2));
  EXPECT_EQ(tensor.data.pieces()[0].data(), reinterpret_cast<const char*>(floats.data()));
}

TEST(PictureInputsTest, WhatIsNoPictureIsRefused) {
  TensorCall call = Bytes({1}, 1);
  call.inputs[0].type = DataType::kInt8;
  ExpectInvalid(call, "INT8, expected FP32");
  call.inputs[0].name = "INPUT__0";
  ExpectInvalid(call, "'INPUT__0'; the model's is 'image'");
  call.inputs.push_back(call.inputs[0]);
  ExpectInvalid(call, "has 2 tensors");
  call.inputs.clear();
  ExpectInvalid(call, "has 0 tensors");
  ExpectInvalid(Bytes({1, 65536}, 1), "[n] or [n,1]");
  ExpectInvalid(Bytes({1, 0}, 1), "[n] or [n,1]");
  ExpectInvalid(Bytes({1, 1, 1}, 1), "[n] or [n,1]");
  ExpectInvalid(Bytes({3}, 2), "the shape says 3 BYTES elements; the contents hold fewer");
}

TEST(PictureInputsTest, MetadataNamesTheNaturalForm) {
  models::ImageInput input;
  input.height = 64;
  input.width = 48;
  EXPECT_EQ(DescribeImage(input).type, DataType::kFp32);
  EXPECT_THAT(DescribeImage(input).shape, ElementsAre(-1, 3, 64, 48));
  input.views = 2;
  input.fit = models::Fit::kKeepRatio;
  EXPECT_EQ(DescribeImage(input).type, DataType::kBytes);
  EXPECT_THAT(DescribeImage(input).shape, ElementsAre(-1, 2));
}

std::vector<std::string> FormsOf(const models::ImageInput& input) {
  std::vector<std::string> forms;
  for (const TensorDescription& form : FormsOfImage(input)) {
    EXPECT_EQ(form.name, "image");
    forms.push_back(absl::StrCat(NameOf(form.type), " ", ShapeText(form.shape)));
  }
  return forms;
}

TEST(PictureInputsTest, EveryFormIsTold) {
  models::ImageInput input;
  input.fit = models::Fit::kCropCentre;
  input.height = 56;
  input.width = 64;
  EXPECT_THAT(FormsOf(input), ElementsAre("BYTES [-1]", "BYTES [-1,1]", "FP32 [-1,3,56,64]"));
  input.fit = models::Fit::kKeepRatio;
  EXPECT_THAT(FormsOf(input), ElementsAre("BYTES [-1]", "BYTES [-1,1]", "FP32 [-1,3,-1,-1]"));
  input.views = 2;
  EXPECT_THAT(FormsOf(input), ElementsAre("BYTES [-1,2]", "FP32 [-1,6,-1,-1]"));
  input.views = 1;
  input.medium = models::Medium::kClip;
  EXPECT_THAT(FormsOf(input), ElementsAre("BYTES [-1]", "BYTES [-1,-1]", "FP32 [-1,-1,3,56,64]"));
  input.medium = models::Medium::kVolume;
  EXPECT_THAT(FormsOf(input), ElementsAre("BYTES [-1]", "BYTES [-1,1]", "FP32 [-1,1,-1,-1,-1]"));
}

}  // namespace
}  // namespace saccade::server
