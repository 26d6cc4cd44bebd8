#include "gmock/gmock.h"
#include "models/api/error.h"
#include "models/api/error_text.h"
#include "models/api/text.h"
#include "models/programs/testing/scripts.h"

namespace saccade::models {
namespace {

using ::testing::ElementsAre;
using testing::Floats;
using ::testing::HasSubstr;
using testing::Ints;
using ::testing::IsEmpty;
using testing::ScriptTest;

constexpr auto kFp32 = DataType::kFp32;
constexpr auto kInt32 = DataType::kInt32;
constexpr auto kBytes = DataType::kBytes;

constexpr const char* kAddSub = R"(
def forward(self, a, b):
    return a + b, a - b
)";

class TorchScriptTest : public ScriptTest {};

TEST_F(TorchScriptTest, InputsAndOutputsByNumber) {
  const auto program = Load(kAddSub, {.inputs = {{"INPUT__1", kFp32, {2}}, {"INPUT__0", kFp32, {2}}},
                                      .outputs = {{"OUTPUT__1", kFp32, {2}}, {"OUTPUT__0", kFp32, {2}}}});
  const auto outputs = program->Run({Floats({{1, 2}}).squeeze(0), Floats({{10, 20}}).squeeze(0)});
  EXPECT_TRUE(outputs[0].toTensor().equal(Floats({{9, 18}}).squeeze(0)));
  EXPECT_TRUE(outputs[1].toTensor().equal(Floats({{11, 22}}).squeeze(0)));
}

TEST_F(TorchScriptTest, InputsByTheNamesOfArgumentsOutputsInOrder) {
  const auto program = Load(kAddSub, {.inputs = {{"b", kInt32, {2}}, {"a", kInt32, {2}}},
                                      .outputs = {{"sum", kInt32, {2}}, {"difference", kInt32, {2}}},
                                      .batched = true});
  const auto outputs = program->Run({Ints({{1, 2}, {3, 4}}), Ints({{10, 20}, {30, 40}})});
  EXPECT_TRUE(outputs[0].toTensor().equal(Ints({{11, 22}, {33, 44}})));
  EXPECT_TRUE(outputs[1].toTensor().equal(Ints({{9, 18}, {27, 36}})));
}

TEST_F(TorchScriptTest, ADictOfOutputsByItsKeys) {
  const auto program = Load(R"(
def forward(self, x) -> Dict[str, Tensor]:
    return {"twice": 2 * x, "half": x / 2}
)",
                            {.inputs = {{"x", kFp32, {-1}}}, .outputs = {{"half", kFp32, {-1}}}});
  EXPECT_TRUE(program->Run({Floats({{3}}).squeeze(0)})[0].toTensor().equal(Floats({{1.5}}).squeeze(0)));

  const auto other = Load(R"(
def forward(self, x) -> Dict[str, Tensor]:
    return {"twice": 2 * x}
)",
                          {.inputs = {{"x", kFp32, {-1}}}, .outputs = {{"thrice", kFp32, {-1}}}});
  EXPECT_THAT(WhyRunFails(*other, {Floats({{3}}).squeeze(0)}),
              HasSubstr("output 'thrice' is missing: the program returned a dict with the keys twice"));
}

TEST_F(TorchScriptTest, AListOfOutputsByNumber) {
  const auto program = Load(
      R"(
def forward(self, x) -> List[Tensor]:
    return [x, x + 1]
)",
      {.inputs = {{"x", kFp32, {1}}}, .outputs = {{"OUTPUT__1", kFp32, {1}}, {"OUTPUT__2", kFp32, {1}}}});
  EXPECT_THAT(WhyRunFails(*program, {Floats({{3}}).squeeze(0)}),
              HasSubstr("output 'OUTPUT__2' is number 2, counted from 0, but the program returned 2"));
}

TEST_F(TorchScriptTest, ADictOfInputs) {
  const auto program =
      Load(R"(
def forward(self, all: Dict[str, Tensor]):
    return all["left"] - all["right"]
)",
           {.inputs = {{"left", kFp32, {1}}, {"right", kFp32, {1}}}, .outputs = {{"OUTPUT__0", kFp32, {1}}}});
  const auto outputs = program->Run({Floats({{3}}).squeeze(0), Floats({{1}}).squeeze(0)});
  EXPECT_TRUE(outputs[0].toTensor().equal(Floats({{2}}).squeeze(0)));
}

TEST_F(TorchScriptTest, OptionalInputsAreTheirArgumentsDefaults) {
  const Signature signature = {.inputs = {{"x", kFp32, {1}}, {"offset", kFp32, {1}, true}},
                               .outputs = {{"y", kFp32, {1}}},
                               .batched = true};
  for (const std::string type : {"Optional[Tensor] = None", "Optional[Tensor]"}) {
    const auto program = Load("def forward(self, x, offset: " + type + R"():
    return x if offset is None else x + offset
)",
                              signature);
    EXPECT_TRUE(program->Run({Floats({{3}, {4}}), {}})[0].toTensor().equal(Floats({{3}, {4}})));
    EXPECT_TRUE(
        program->Run({Floats({{3}, {4}}), Floats({{1}, {2}})})[0].toTensor().equal(Floats({{4}, {6}})));
  }
  EXPECT_THAT(
      WhyNotLoaded("def forward(self, x, offset):\n    return x + offset\n", signature),
      HasSubstr(
          "input 'offset' is optional, but the program's argument 'offset' is Tensor without a default; "
          "expected one, or Optional[...]"));
}

TEST_F(TorchScriptTest, OptionalInputsAreNotInTheDict) {
  const auto program = Load(R"(
def forward(self, all: Dict[str, Tensor]):
    return all["left"] - all["right"] if "right" in all else all["left"]
)",
                            {.inputs = {{"left", kFp32, {1}}, {"right", kFp32, {1}, true}},
                             .outputs = {{"OUTPUT__0", kFp32, {1}}}});
  EXPECT_TRUE(program->Run({Floats({{3}}).squeeze(0), {}})[0].toTensor().equal(Floats({{3}}).squeeze(0)));
}

TEST_F(TorchScriptTest, OptionalTextsAndNothingElse) {
  const auto program = Load(R"(
def forward(self, more: Optional[List[str]], texts: List[str]) -> List[str]:
    if more is None:
        return texts
    return [texts[i] + more[i] for i in range(len(texts))]
)",
                            {.inputs = {{"more", kBytes, {-1}, true}, {"texts", kBytes, {1}}},
                             .outputs = {{"OUTPUT__0", kBytes, {1}}},
                             .batched = true});
  const c10::List<std::string> texts({"a", "b"});
  EXPECT_EQ(program->Run({{}, texts})[0].toListRef().size(), 2u);
  EXPECT_EQ(program->Run({c10::List<std::string>({"c", "d"}), texts})[0].toListRef()[1].toStringRef(), "bd");
}

TEST_F(TorchScriptTest, ArgumentsWithADefaultMayBeLeftOut) {
  const auto program = Load(R"(
def forward(self, x, scale: float = 3.0, offset: Optional[Tensor] = None):
    y = x * scale
    return y if offset is None else y + offset
)",
                            {.inputs = {{"x", kFp32, {1}}}, .outputs = {{"y", kFp32, {1}}}});
  EXPECT_TRUE(program->Run({Floats({{3}}).squeeze(0)})[0].toTensor().equal(Floats({{9}}).squeeze(0)));
}

TEST_F(TorchScriptTest, TextsAreListsOfStr) {
  const auto program = Load(R"(
def forward(self, texts: List[str]) -> List[str]:
    return [text + "!" for text in texts]
)",
                            {.inputs = {{"texts", kBytes, {-1}}}, .outputs = {{"OUTPUT__0", kBytes, {-1}}}});
  const auto outputs = program->Run({c10::IValue(c10::List<std::string>({"a", "", "bc"}))});
  EXPECT_THAT(outputs[0].to<std::vector<std::string>>(), ElementsAre("a!", "!", "bc!"));
}

TEST_F(TorchScriptTest, EveryTypeComesBackAsItWas) {
  for (const auto& [element, scalar] : testing::AllTypes()) {
    const auto program = Load("def forward(self, x):\n    return x\n",
                              {.inputs = {{"x", element, {-1}}}, .outputs = {{"y", element, {-1}}}});
    const at::Tensor sent = Ints({{0, 1, 1, 0}}).squeeze(0).to(scalar);
    const at::Tensor got = program->Run({sent})[0].toTensor();
    EXPECT_EQ(got.scalar_type(), scalar) << NameOf(element);
    EXPECT_TRUE(got.to(at::kInt).equal(Ints({{0, 1, 1, 0}}).squeeze(0))) << NameOf(element);
  }
}

TEST_F(TorchScriptTest, WhatItWritesToIsACopy) {
  const auto program = Load("def forward(self, x):\n    return x.add_(1)\n",
                            {.inputs = {{"x", kFp32, {1}}}, .outputs = {{"y", kFp32, {1}}}});
  const at::Tensor sent = Floats({{3}}).squeeze(0);
  EXPECT_TRUE(program->Run({sent})[0].toTensor().equal(Floats({{4}}).squeeze(0)));
  EXPECT_EQ(sent.item<float>(), 3);
}

// The alias analysis of TorchScript tells who writes to a dict, and not who writes to its tensors.
TEST_F(TorchScriptTest, WhatItWritesToInADictIsACopy) {
  for (const std::string body :
       {"y = all[\"x\"]\n    y.add_(1)\n    return y", "return all[\"x\"].view(-1).add_(1)",
        "return all.pop(\"x\").add_(1)", "for y in all.values():\n        y.add_(1)\n    return all[\"x\"]",
        "y = all[\"x\"]\n    if y.sum() > 2:\n        y.add_(1)\n    return y"}) {
    const auto program = Load("def forward(self, all: Dict[str, Tensor]):\n    " + body + "\n",
                              {.inputs = {{"x", kFp32, {1}}}, .outputs = {{"y", kFp32, {1}}}});
    const at::Tensor sent = Floats({{3}}).squeeze(0);
    EXPECT_TRUE(program->Run({sent})[0].toTensor().equal(Floats({{4}}).squeeze(0))) << body;
    EXPECT_EQ(sent.item<float>(), 3) << body;
  }
}

TEST_F(TorchScriptTest, WhatItOnlyReadsInADictIsNoCopy) {
  const auto program = Load("def forward(self, all: Dict[str, Tensor]):\n    return all[\"x\"]\n",
                            {.inputs = {{"x", kFp32, {1}}}, .outputs = {{"y", kFp32, {1}}}});
  const at::Tensor sent = Floats({{3}}).squeeze(0);
  EXPECT_EQ(program->Run({sent})[0].toTensor().data_ptr(), sent.data_ptr());
}

TEST_F(TorchScriptTest, ADictOfOptionalTensorsIsRefused) {
  EXPECT_THAT(WhyNotLoaded("def forward(self, all: Dict[str, Optional[Tensor]]):\n    return 3\n",
                           {.inputs = {{"x", kFp32, {1}}}, .outputs = {{"y", kFp32, {1}}}}),
              HasSubstr("the program's argument 'all' is Dict[str, Optional[Tensor]]; expected "
                        "Dict[str, Tensor]"));
}

TEST_F(TorchScriptTest, WhatItOnlyReadsIsNone) {
  const auto program = Load("def forward(self, x):\n    return x\n",
                            {.inputs = {{"x", kFp32, {1}}}, .outputs = {{"y", kFp32, {1}}}});
  const at::Tensor sent = Floats({{3}}).squeeze(0);
  EXPECT_EQ(program->Run({sent})[0].toTensor().data_ptr(), sent.data_ptr());
}

TEST_F(TorchScriptTest, IsNotInTrainingMode) {
  const auto program = Load("def forward(self, x):\n    return torch.dropout(x, 0.5, self.training)\n",
                            {.inputs = {{"x", kFp32, {64}}}, .outputs = {{"y", kFp32, {64}}}});
  const at::Tensor sent = Floats({std::vector<double>(64, 1)}).squeeze(0);
  EXPECT_TRUE(program->Run({sent})[0].toTensor().equal(sent));
}

TEST_F(TorchScriptTest, OutputsThatDifferFromTheConfigurationAreTold) {
  const Signature signature = {
      .inputs = {{"a", kFp32, {-1}}, {"b", kFp32, {-1}}}, .outputs = {{"s", kFp32, {2}}}, .batched = true};
  EXPECT_EQ(Load(kAddSub, signature)->Run({Floats({{1, 2, 3}}), Floats({{1, 2, 3}})})[0].toTensor().size(1),
            3)
      << "shapes are not checked unless the configuration asks for it";
  Signature strict = signature;
  strict.strict_outputs = true;
  Signature reshaped = signature;
  reshaped.outputs[0].reshaped = true;
  for (const Signature& checked : {strict, reshaped}) {
    EXPECT_THAT(
        WhyRunFails(*Load(kAddSub, checked), {Floats({{1, 2, 3}}), Floats({{1, 2, 3}})}),
        HasSubstr("output 's': the program returned FP32 [1,3], but the configuration says FP32 [-1,2], "
                  "for a batch of 1"));
  }

  Signature of_ints = signature;
  of_ints.outputs[0] = {"s", kInt32, {2}};
  EXPECT_THAT(
      WhyRunFails(*Load(kAddSub, of_ints), {Floats({{1, 2}}), Floats({{1, 2}})}),
      HasSubstr("output 's': the program returned FP32 [1,2], but the configuration says INT32 [-1,2]"));

  const auto sums = Load("def forward(self, a, b):\n    return (a + b).sum(dim=0)\n", signature);
  EXPECT_THAT(
      WhyRunFails(*sums, {Floats({{1, 2}, {3, 4}, {5, 6}}), Floats({{1, 2}, {3, 4}, {5, 6}})}),
      HasSubstr("the program returned FP32 [2], but the configuration says FP32 [-1,2], for a batch of 3"));
}

TEST_F(TorchScriptTest, WhatItThrowsIsTold) {
  const auto program = Load("def forward(self, x):\n    assert x.sum() > 9, \"too little\"\n    return x\n",
                            {.inputs = {{"x", kFp32, {1}}}, .outputs = {{"y", kFp32, {1}}}});
  EXPECT_THAT(WhyRunFails(*program, {Floats({{3}}).squeeze(0)}), HasSubstr("too little"));
}

TEST_F(TorchScriptTest, WhatItSaysIsCutAndUtf8) {
  std::string umlauts;
  for (int i = 0; i < 3000; ++i) umlauts += "\u00fc";
  const auto program =
      Load("def forward(self, x):\n    assert x.sum() > 9, \"." + umlauts + "\"\n    return x\n",
           {.inputs = {{"x", kFp32, {1}}}, .outputs = {{"y", kFp32, {1}}}});
  const std::string why = ErrorText(std::runtime_error(WhyRunFails(*program, {Floats({{3}}).squeeze(0)})));
  EXPECT_LT(why.size(), 2100);
  EXPECT_TRUE(IsUtf8(why));
}

TEST_F(TorchScriptTest, ArgumentsAndInputsThatDoNotMeetAreTold) {
  const auto why = [&](std::vector<TensorSignature> inputs) {
    return WhyNotLoaded(kAddSub, {.inputs = std::move(inputs), .outputs = {{"OUTPUT__0", kFp32, {2}}}});
  };
  EXPECT_THAT(why({{"a", kFp32, {2}}}),
              HasSubstr("no input of the configuration matches the program's argument 'b' (number 1"));
  EXPECT_THAT(why({{"INPUT__0", kFp32, {2}}, {"INPUT__2", kFp32, {2}}}),
              HasSubstr("input 'INPUT__2' is number 2, counted from 0, but the program has 2"));
  EXPECT_THAT(why({{"INPUT__0", kFp32, {2}}, {"OTHER__0", kFp32, {2}}}),
              HasSubstr("'OTHER__0' and 'INPUT__0' are both number 0"));
  EXPECT_THAT(why({{"a", kFp32, {2}}, {"b", kBytes, {2}}}),
              HasSubstr("input 'b' is BYTES, but the program's argument 'b' is Tensor"));
  EXPECT_THAT(
      WhyNotLoaded("def forward(self, x, n: int):\n    return x * n\n",
                   {.inputs = {{"x", kFp32, {1}}, {"n", kInt32, {1}}}, .outputs = {{"y", kFp32, {1}}}}),
      HasSubstr("input 'n' is INT32, but the program's argument 'n' is int; only tensors and List[str]"));
  EXPECT_THAT(WhyNotLoaded(kAddSub, {.inputs = {{"a", kFp32, {2}}, {"b", kFp32, {2}}},
                                     .outputs = {{"OUTPUT__2", kFp32, {2}}}}),
              HasSubstr("output 'OUTPUT__2' is number 2"));
  EXPECT_THAT(WhyNotLoaded("def forward(self, x):\n    return 3\n",
                           {.inputs = {{"x", kFp32, {1}}}, .outputs = {{"y", kFp32, {1}}}}),
              HasSubstr("the program returns int; expected a tensor"));
}

TEST_F(TorchScriptTest, ParametersThatAreUnknownAreNoted) {
  const Signature signature = {.inputs = {{"x", kFp32, {1}}}, .outputs = {{"y", kFp32, {1}}}};
  const char* const identity = "def forward(self, x):\n    return x\n";
  for (const Options& options : {Options{{"INFERENCE_MODE", "false"}},
                                 {{"DISABLE_OPTIMIZED_EXECUTION", "true"}},
                                 {{"ALLOW_TF32", "true"}},
                                 {{"INTRA_OP_THREAD_COUNT", "4"}}}) {
    EXPECT_EQ(Load(identity, signature, options)->Run({Floats({{3}}).squeeze(0)}).size(), 1);
  }
  EXPECT_THAT(WhyNotLoaded(identity, signature, {{"INFERENCE_MODE", "perhaps"}}),
              HasSubstr("parameter INFERENCE_MODE is 'perhaps', expected true or false"));
  EXPECT_THAT(WhyNotLoaded(identity, signature, {{"ALLOW_TF32", "1"}}),
              HasSubstr("parameter ALLOW_TF32 is '1', expected true or false"));
  for (const char* known : {"INFERENCE_MODE", "DISABLE_CUDNN", "ENABLE_NVFUSER", "ENABLE_TENSOR_FUSER"})
    EXPECT_THAT(Load(identity, signature, {{known, "true"}})->notes(), IsEmpty()) << known;
  EXPECT_THAT(Load(identity, signature, {{"input_size", "64"}})->notes(),
              ElementsAre("parameter 'input_size' is ignored: it is unknown to backend pytorch, which uses "
                          "ALLOW_TF32, DISABLE_OPTIMIZED_EXECUTION, INFERENCE_MODE"));
}

TEST_F(TorchScriptTest, FilesThatAreNoneAreTold) {
  const Signature signature = {.inputs = {{"x", kFp32, {1}}}, .outputs = {{"y", kFp32, {1}}}};
  const auto why = [&](const std::string& contents, const std::string& name = "model.pt") {
    return WhyNotLoaded(Write(contents, name), signature);
  };
  EXPECT_THAT(why(""),
              HasSubstr("the program is not a zip archive; expected a file written by torch.jit.save"));
  EXPECT_THAT(why("PK\x03\x04 and no more"), HasSubstr("cannot load the program as TorchScript: "));
  EXPECT_THAT(why("none", "model.pt2"),
              HasSubstr("expected a file written by torch._inductor.aoti_compile_and_package"));
  EXPECT_THAT(why("PK\x03\x04 and no more", "model.pt2"),
              HasSubstr("the program is not an AOTInductor package"));
  EXPECT_THAT(WhyNotLoaded("/nowhere/model.pt", signature), HasSubstr("cannot be opened"));

  const std::string whole = Save("def forward(self, x):\n    return x\n");
  EXPECT_THAT(WhyNotLoaded(testing::Copy(whole, "model.pt2"), signature),
              HasSubstr("the program is not an AOTInductor package"));
  std::string bytes = testing::Contents(whole);
  EXPECT_THAT(why(bytes.substr(0, bytes.size() / 2)), HasSubstr("cannot load the program as TorchScript: "));
}

TEST_F(TorchScriptTest, ThreadsShareOne) {
  const auto program = Load("def forward(self, x):\n    return x.matmul(x)\n",
                            {.inputs = {{"x", kFp32, {2, 2}}}, .outputs = {{"y", kFp32, {2, 2}}}});
  const at::Tensor expected = Floats({{7, 10}, {15, 22}});
  EXPECT_TRUE(testing::OnThreads(
      4, [&] { return program->Run({Floats({{1, 2}, {3, 4}})})[0].toTensor().equal(expected); }));
}

}  // namespace
}  // namespace saccade::models
