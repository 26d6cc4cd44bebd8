#include "server/engine/tensor_pass.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/programs/values.h"
#include "server/core/bytes_elements.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Values = std::vector<models::TensorProgram::Value>;

// Returns the values of a function, checked like those of other programs.
class Program final : public models::TensorProgram {
 public:
  Program(const ModelSettings& settings, std::function<Values(Values)> run)
      : signature_(SignatureOf(settings)), run_(std::move(run)) {}

  const models::Signature& signature() const override { return signature_; }
  const std::vector<std::string>& notes() const override { return notes_; }
  Values Run(Values inputs) const override {
    seen = inputs;
    const int64_t rows = models::RowsOf(signature_, inputs);
    return models::CheckOutputs(signature_, rows, run_(std::move(inputs)));
  }

  mutable Values seen;

 private:
  const models::Signature signature_;
  const std::vector<std::string> notes_;
  const std::function<Values(Values)> run_;
};

Tensor Floats(const std::string& name, std::vector<int64_t> shape, std::vector<float> values) {
  const auto kept = std::make_shared<std::vector<float>>(std::move(values));
  return {
      .name = name,
      .shape = std::move(shape),
      .data = BytePieces({reinterpret_cast<const char*>(kept->data()), kept->size() * sizeof(float)}, kept)};
}

std::vector<float> FloatsOf(const Tensor& tensor) {
  std::vector<float> values(tensor.data.size() / sizeof(float));
  tensor.data.CopyTo(reinterpret_cast<char*>(values.data()));
  return values;
}

NamedTensors Request(Tensor tensor, int64_t rows) { return {.tensors = {std::move(tensor)}, .rows = rows}; }

class TensorPassTest : public ::testing::Test {
 protected:
  TensorPassTest() {
    settings_.inputs = {{.name = "x", .dims = {2}}};
    settings_.outputs = {{.name = "y", .dims = {2}}};
  }

  ModelSettings settings_;
  const std::function<Values(Values)> twice_ = [](Values in) -> Values { return {in[0].toTensor() * 2}; };
};

TEST_F(TensorPassTest, EachRequestGetsItsRows) {
  const Program program(settings_, twice_);
  const NamedTensors one = Request(Floats("x", {1, 2}, {1, 2}), 1);
  const NamedTensors two = Request(Floats("x", {2, 2}, {3, 4, 5, 6}), 2);
  auto answers = RunTensors(program, settings_, {&one, &two});
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_EQ((*answers)[0][0].name, "y");
  EXPECT_THAT((*answers)[0][0].shape, ElementsAre(1, 2));
  EXPECT_THAT(FloatsOf((*answers)[0][0]), ElementsAre(2, 4));
  EXPECT_THAT((*answers)[1][0].shape, ElementsAre(2, 2));
  EXPECT_THAT(FloatsOf((*answers)[1][0]), ElementsAre(6, 8, 10, 12));
}

// A client that does not read its answer must not keep the others'.
TEST_F(TensorPassTest, AnswersKeepTheirOwnRowsAlone) {
  c10::weak_intrusive_ptr<at::TensorImpl> batch(c10::intrusive_ptr<at::TensorImpl>{});
  const Program program(settings_, [&batch](Values in) -> Values {
    const at::Tensor made = in[0].toTensor() * 2;
    batch = c10::weak_intrusive_ptr<at::TensorImpl>(made.getIntrusivePtr());
    return {made};
  });
  const NamedTensors one = Request(Floats("x", {1, 2}, {1, 2}), 1);
  const NamedTensors two = Request(Floats("x", {1, 2}, {3, 4}), 1);
  auto answers = RunTensors(program, settings_, {&one, &two});
  ASSERT_TRUE(answers.ok());
  EXPECT_TRUE(batch.expired());
  const Tensor last = std::move((*answers)[1][0]);
  answers->clear();
  EXPECT_THAT(FloatsOf(last), ElementsAre(6, 8));
}

TEST_F(TensorPassTest, OneRequestIsNotCopiedUnlessItHasTo) {
  const Program program(settings_, twice_);
  const NamedTensors whole = Request(Floats("x", {1, 2}, {1, 2}), 1);
  ASSERT_TRUE(RunTensors(program, settings_, {&whole}).ok());
  EXPECT_EQ(program.seen[0].toTensor().const_data_ptr(), whole.tensors[0].data.pieces()[0].data());

  // In two pieces, of which the second starts at an odd address.
  const std::string bytes(whole.tensors[0].data.pieces()[0]);
  const std::string shifted = absl::StrCat(" ", bytes.substr(3));
  Tensor pieces = {.name = "x", .shape = {1, 2}, .data = BytePieces(std::string_view(bytes).substr(0, 3))};
  pieces.data.Add(std::string_view(shifted).substr(1));
  const NamedTensors parts = Request(pieces, 1);
  auto answers = RunTensors(program, settings_, {&parts});
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_THAT(FloatsOf((*answers)[0][0]), ElementsAre(2, 4));

  Tensor odd = {.name = "x", .shape = {1, 2}, .data = {}};
  const std::string at_odd = absl::StrCat(" ", bytes);
  odd.data.Add(std::string_view(at_odd).substr(1));
  const NamedTensors unaligned = Request(odd, 1);
  answers = RunTensors(program, settings_, {&unaligned});
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_THAT(FloatsOf((*answers)[0][0]), ElementsAre(2, 4));
}

TEST_F(TensorPassTest, WhatIsGivenBackIsNotTheRequestsMemory) {
  const std::function<Values(Values)> same = [](Values in) -> Values { return {in[0]}; };
  // As a library does that knows the memory alone.
  const std::function<Values(Values)> same_memory = [](Values in) -> Values {
    const at::Tensor x = in[0].toTensor();
    return {at::from_blob(x.data_ptr(), x.sizes(), x.options())};
  };
  for (const auto& run : {same, same_memory}) {
    const Program identity(settings_, run);
    const NamedTensors sent = Request(Floats("x", {1, 2}, {1, 2}), 1);
    auto answers = RunTensors(identity, settings_, {&sent});
    ASSERT_TRUE(answers.ok());
    EXPECT_NE((*answers)[0][0].data.pieces()[0].data(), sent.tensors[0].data.pieces()[0].data());
    EXPECT_THAT(FloatsOf((*answers)[0][0]), ElementsAre(1, 2));
  }
}

TEST_F(TensorPassTest, ShapesThatDifferAreNeverOneBatch) {
  settings_.inputs[0].dims = {-1};
  const Program program(settings_, twice_);
  const NamedTensors two = Request(Floats("x", {1, 2}, {1, 2}), 1);
  const NamedTensors three = Request(Floats("x", {1, 3}, {1, 2, 3}), 1);
  EXPECT_EQ(RunTensors(program, settings_, {&two, &three}).status().code(), absl::StatusCode::kInternal);
}

TEST_F(TensorPassTest, AsManyBytesAsTheShapeSays) {
  const Program program(settings_, twice_);
  const NamedTensors fits = Request(Floats("x", {1, 2}, {1, 2}), 1);
  for (const std::vector<float>& values : {std::vector<float>{1}, std::vector<float>{1, 2, 3}}) {
    const NamedTensors other = Request(Floats("x", {1, 2}, values), 1);
    const absl::Status expected = absl::InternalError(
        absl::StrCat("input 'x' holds ", 4 * values.size(), " bytes; FP32 of shape [1,2] is 8"));
    EXPECT_EQ(RunTensors(program, settings_, {&other}).status(), expected);
    EXPECT_EQ(RunTensors(program, settings_, {&fits, &other}).status(), expected);
  }
}

TEST_F(TensorPassTest, WhatIsMissingIsNone) {
  settings_.inputs.push_back({.name = "more", .dims = {2}, .optional = true});
  const Program program(settings_, [](Values in) -> Values {
    return {in[1].isNone() ? in[0].toTensor() * 2 : in[0].toTensor() + in[1].toTensor()};
  });
  const NamedTensors without = Request(Floats("x", {1, 2}, {1, 2}), 1);
  const NamedTensors with = {.tensors = {Floats("x", {1, 2}, {1, 2}), Floats("more", {1, 2}, {5, 5})},
                             .rows = 1};
  auto answers = RunTensors(program, settings_, {&without, &without});
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_THAT(FloatsOf((*answers)[1][0]), ElementsAre(2, 4));
  answers = RunTensors(program, settings_, {&with});
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_THAT(FloatsOf((*answers)[0][0]), ElementsAre(6, 7));
  EXPECT_EQ(RunTensors(program, settings_, {&with, &without}).status().code(), absl::StatusCode::kInternal);
}

TEST_F(TensorPassTest, ReshapedOnBothSides) {
  settings_.inputs[0] = {.name = "x", .dims = {2}, .reshape = std::vector<int64_t>{1, 2}};
  settings_.outputs[0] = {.name = "y", .dims = {2, 1}, .reshape = std::vector<int64_t>{1, 2}};
  const Program program(settings_, twice_);
  const NamedTensors sent = Request(Floats("x", {1, 2}, {1, 2}), 1);
  auto answers = RunTensors(program, settings_, {&sent});
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_THAT(program.seen[0].toTensor().sizes(), ElementsAre(1, 1, 2));
  EXPECT_THAT((*answers)[0][0].shape, ElementsAre(1, 2, 1));
}

TEST_F(TensorPassTest, TextsGoInAndComeOut) {
  settings_.inputs[0] = {.name = "x", .type = DataType::kBytes, .dims = {1}};
  settings_.outputs[0] = {.name = "y", .type = DataType::kBytes, .dims = {1}};
  const Program identity(settings_, [](Values in) -> Values { return {in[0]}; });
  const std::string bytes("\1\0\0\0a\0\0\0\0", 9);
  const NamedTensors two =
      Request({.name = "x", .type = DataType::kBytes, .shape = {2, 1}, .data = BytePieces(bytes)}, 2);
  const NamedTensors one = Request({.name = "x",
                                    .type = DataType::kBytes,
                                    .shape = {1, 1},
                                    .data = BytePieces(std::string_view(bytes).substr(0, 5))},
                                   1);
  auto answers = RunTensors(identity, settings_, {&two, &one});
  ASSERT_TRUE(answers.ok()) << answers.status();
  const auto texts = [&](size_t i, int64_t count) {
    return SplitBytes((*answers)[i][0].data, count)->elements;
  };
  EXPECT_THAT(texts(0, 2), ElementsAre("a", ""));
  EXPECT_THAT((*answers)[0][0].shape, ElementsAre(2, 1));
  EXPECT_THAT(texts(1, 1), ElementsAre("a"));
}

TEST_F(TensorPassTest, WhatItThrowsOrGivesWronglyIsTold) {
  const NamedTensors sent = Request(Floats("x", {1, 2}, {1, 2}), 1);
  const Program unlucky(settings_, [](Values) -> Values { throw std::runtime_error("unlucky"); });
  EXPECT_EQ(RunTensors(unlucky, settings_, {&sent}).status(), absl::InternalError("unlucky"));
  const auto cut = [](Values in) -> Values { return {in[0].toTensor().narrow(1, 0, 1)}; };
  const auto answers = RunTensors(Program(settings_, cut), settings_, {&sent});
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_THAT((*answers)[0][0].shape, ElementsAre(1, 1)) << "the shape is the program's";
  settings_.strict_output_shapes = true;
  const Program narrow(settings_, cut);
  EXPECT_THAT(
      std::string(RunTensors(narrow, settings_, {&sent}).status().message()),
      HasSubstr("output 'y': the program returned FP32 [1,1], but the configuration says FP32 [-1,2]"));
}

}  // namespace
}  // namespace saccade::server
