#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/api/error.h"
#include "models/described/json_tree.h"
#include "models/described/picture_program.h"
#include "models/testing/thread_seconds.h"

namespace saccade::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::ThreadSeconds;

// `processor`: the members of preprocessor_config.json behind its class.
PictureProgram Read(const std::string& processor_class, const std::string& processor,
                    const std::string& architecture = "ResNetForImageClassification") {
  const std::string named = "{\"image_processor_type\": \"" + processor_class + "\"";
  return ReadHuggingFace("{\"architectures\": [\"" + architecture + "\"]}",
                         named + (processor.empty() ? "" : ", ") + processor + "}");
}

ImageInput InputOf(const std::string& processor_class, const std::string& processor) {
  return Read(processor_class, processor).input;
}

// Returns the message of the LoadError; empty if there is none.
std::string ErrorOf(const std::string& processor_class, const std::string& processor,
                    const std::string& architecture = "ResNetForImageClassification") {
  try {
    Read(processor_class, processor, architecture);
  } catch (const LoadError& error) {
    return error.what();
  }
  return "";
}

void ExpectMean(const ImageInput& input, float red, float green, float blue) {
  EXPECT_FLOAT_EQ(input.mean[0], red);
  EXPECT_FLOAT_EQ(input.mean[1], green);
  EXPECT_FLOAT_EQ(input.mean[2], blue);
}

TEST(HuggingFace, ReadsWhatSavePretrainedWritesForVit) {
  const ImageInput input = InputOf("ViTImageProcessor", R"(
      "do_convert_rgb": null, "do_normalize": true, "do_rescale": true, "do_resize": true,
      "image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6], "resample": 3,
      "rescale_factor": 0.00392156862745098, "size": {"height": 224, "width": 192}, "data_format": "channels_first")");
  EXPECT_EQ(input.fit, Fit::kExact);
  EXPECT_EQ(input.height, 224);
  EXPECT_EQ(input.width, 192);
  EXPECT_EQ(input.interpolation, Interpolation::kBicubic);
  ExpectMean(input, 0.1F, 0.2F, 0.3F);
  EXPECT_FLOAT_EQ(input.std[2], 0.6F);
  EXPECT_TRUE(input.rgb);
}

TEST(HuggingFace, ANumberWithAMaxSizeKeepsTheRatio) {
  const ImageInput input = InputOf("DetrFeatureExtractor", R"("size": 800, "max_size": 1300)");
  EXPECT_EQ(input.fit, Fit::kKeepRatio);
  EXPECT_EQ(input.short_side, 800);
  EXPECT_EQ(input.long_side, 1300);
  EXPECT_EQ(PlacementOf(input, {400, 500}).scaled, (Size{800, 1000}));
  EXPECT_EQ(PlacementOf(input, {400, 1300}).scaled, (Size{400, 1300}));
  EXPECT_EQ(InputOf("DetrImageProcessor", R"("size": 600)").long_side, 1333);
}

TEST(HuggingFace, ANumberIsASquareOrAShorterSideByTheClass) {
  EXPECT_EQ(InputOf("ViTImageProcessor", R"("size": 192)").fit, Fit::kExact);
  const ImageInput clip = InputOf("CLIPImageProcessor", R"("size": 256, "crop_size": 240)");
  EXPECT_EQ(clip.fit, Fit::kCropCentre);
  EXPECT_EQ(clip.short_side, 256);
  EXPECT_EQ(clip.height, 240);
  EXPECT_THAT(ErrorOf("ViTImageProcessor", R"("size": 800, "max_size": 1333)"),
              AllOf(HasSubstr("'max_size' is 1333"), HasSubstr("saccade.json")));
}

TEST(HuggingFace, ConvNextCropsAShareBelow384) {
  const ImageInput small =
      InputOf("ConvNextImageProcessor", R"("size": {"shortest_edge": 224}, "crop_pct": 0.9)");
  EXPECT_EQ(small.fit, Fit::kCropCentre);
  EXPECT_EQ(small.short_side, 248);
  EXPECT_EQ(small.height, 224);
  EXPECT_EQ(small.width, 224);
  EXPECT_TRUE(small.crop_rounds_down);
  EXPECT_EQ(InputOf("ConvNextFeatureExtractor", R"("size": 224)").short_side, 256);
  const ImageInput large =
      InputOf("ConvNextImageProcessorFast", R"("size": {"shortest_edge": 384}, "crop_pct": 0.9)");
  EXPECT_EQ(large.fit, Fit::kExact);
  EXPECT_EQ(large.height, 384);
  EXPECT_EQ(large.width, 384);
  EXPECT_THAT(ErrorOf("ViTImageProcessor", R"("size": 224, "crop_pct": 0.9)"),
              HasSubstr("'crop_pct' is 0.9"));
}

TEST(HuggingFace, MobileVitTakesBgrAndDoesNotNormalize) {
  const std::string sizes = R"("size": {"shortest_edge": 288}, "crop_size": {"height": 256, "width": 256})";
  const ImageInput input = InputOf("MobileViTFeatureExtractor", sizes);
  EXPECT_FALSE(input.rgb);
  EXPECT_EQ(input.short_side, 288);
  ExpectMean(input, 0, 0, 0);
  EXPECT_FLOAT_EQ(input.std[0], 1);
  EXPECT_TRUE(InputOf("MobileViTImageProcessor", sizes + R"(, "do_flip_channel_order": false)").rgb);
  EXPECT_THAT(ErrorOf("MobileViTImageProcessor", sizes + R"(, "do_normalize": true)"),
              HasSubstr("do_normalize is true"));
  EXPECT_THAT(ErrorOf("ViTImageProcessor", R"("do_flip_channel_order": true)"),
              HasSubstr("'do_flip_channel_order' is true"));
}

TEST(HuggingFace, AMissingKeyIsTheClassesDefault) {
  const ImageInput vit = InputOf("ViTImageProcessor", "");
  ExpectMean(vit, 0.5F, 0.5F, 0.5F);
  EXPECT_EQ(vit.interpolation, Interpolation::kBilinear);
  const ImageInput clip = InputOf("CLIPImageProcessor", R"("image_std": null)");
  ExpectMean(clip, 0.48145466F, 0.4578275F, 0.40821073F);
  EXPECT_FLOAT_EQ(clip.std[1], 0.26130258F);
  EXPECT_EQ(clip.interpolation, Interpolation::kBicubic);
  EXPECT_EQ(clip.fit, Fit::kCropCentre);
  ExpectMean(InputOf("SegformerImageProcessor", ""), 0.485F, 0.456F, 0.406F);
  ExpectMean(InputOf("RTDetrImageProcessor", ""), 0, 0, 0);
}

TEST(HuggingFace, AClassThatIsNotKnownIsAnError) {
  EXPECT_THAT(ErrorOf("GLPNImageProcessor", R"("size_divisor": 32)"),
              AllOf(HasSubstr("image_processor_type is 'GLPNImageProcessor'"), HasSubstr("ViTImageProcessor"),
                    HasSubstr("saccade.json")));
  try {
    ReadHuggingFace(R"({"architectures": ["ViTModel"]})", R"({"size": {"height": 8, "width": 8}})");
    FAIL() << "a missing class is not an error";
  } catch (const LoadError& error) {
    EXPECT_THAT(error.what(), HasSubstr("image_processor_type is missing"));
  }
}

TEST(HuggingFace, DptIsRoundedToMultiples) {
  const ImageInput input =
      InputOf("DPTImageProcessor", R"("size": {"height": 384, "width": 500}, "ensure_multiple_of": 14)");
  EXPECT_EQ(input.fit, Fit::kExact);
  EXPECT_EQ(input.height, 378);
  EXPECT_EQ(input.width, 504);
  EXPECT_THAT(ErrorOf("DPTImageProcessor", R"("size": 48, "ensure_multiple_of": 32)"),
              AllOf(HasSubstr("ensure_multiple_of is 32"), HasSubstr("saccade.json")));
}

// As the folders of Depth Anything have it.
TEST(HuggingFace, DptMayKeepTheRatio) {
  const PictureProgram program = Read("DPTImageProcessor", R"("do_normalize": true, "do_pad": false,
      "do_rescale": true, "do_resize": true, "ensure_multiple_of": 14, "image_mean": [0.485, 0.456, 0.406],
      "image_std": [0.229, 0.224, 0.225], "keep_aspect_ratio": true, "resample": 3,
      "rescale_factor": 0.00392156862745098, "size": {"height": 518, "width": 518}, "size_divisor": null)",
                                      "DepthAnythingForDepthEstimation");
  EXPECT_EQ(program.head.kind, HeadKind::kDepth);
  EXPECT_EQ(program.head.filter, Interpolation::kBicubic);
  EXPECT_THAT(program.pictures.dims, ::testing::ElementsAre(3, -1, -1));
  EXPECT_EQ(program.input.interpolation, Interpolation::kBicubic);
  EXPECT_EQ(PlacementOf(program.input, {480, 640}).scaled, (Size{518, 686}));
  EXPECT_EQ(PlacementOf(program.input, {427, 640}).scaled, (Size{350, 518}));
  const std::string keeps = R"("keep_aspect_ratio": true, "ensure_multiple_of": )";
  EXPECT_EQ(ErrorOf("DPTImageProcessor", keeps + "384"), "");
  EXPECT_THAT(ErrorOf("DPTImageProcessor", keeps + "385"),
              AllOf(HasSubstr("ensure_multiple_of is 385; expected at most the size, 384 x 384"),
                    HasSubstr("saccade.json")));
}

TEST(HuggingFace, YolosIsRoundedDownToMultiplesOf16) {
  const ImageInput input =
      InputOf("YolosImageProcessor", R"("size": {"shortest_edge": 512, "longest_edge": 864})");
  EXPECT_EQ(input.fit, Fit::kKeepRatio);
  EXPECT_EQ(PlacementOf(input, {427, 640}).scaled, (Size{512, 752}));
  EXPECT_EQ(PlacementOf(InputOf("YolosFeatureExtractor", ""), {480, 640}).scaled, (Size{800, 1056}));
  EXPECT_EQ(InputOf("YolosImageProcessor", R"("size": {"height": 224, "width": 288})").fit, Fit::kExact);
  EXPECT_THAT(ErrorOf("YolosImageProcessor", R"("size": {"shortest_edge": 15, "longest_edge": 99})"),
              HasSubstr("multiples of 16"));
}

TEST(HuggingFace, ACropMayFollowBothSides) {
  const ImageInput input = InputOf("DeiTImageProcessor", "");
  EXPECT_EQ(input.fit, Fit::kCropCentre);
  EXPECT_EQ(SizeBeforeCrop(input, {301, 467}), (Size{256, 256}));
  EXPECT_EQ(input.height, 224);
  EXPECT_EQ(input.width, 224);
  EXPECT_TRUE(input.crop_rounds_down);
  const ImageInput uncropped = InputOf("DeiTFeatureExtractor", R"("size": 224)");
  EXPECT_EQ(uncropped.fit, Fit::kExact);
  EXPECT_THAT(ErrorOf("DeiTImageProcessor", R"("size": {"height": 256, "width": 200})"),
              HasSubstr("pictures would be padded; expected at most the size, 256 x 200"));
}

TEST(HuggingFace, PaddingIsAnErrorUnlessItIsThatOfABatch) {
  EXPECT_EQ(ErrorOf("DetrImageProcessor", R"("do_pad": true)"), "");
  EXPECT_THAT(ErrorOf("DetrImageProcessor", R"("do_pad": true, "pad_size": {"height": 900, "width": 900})"),
              HasSubstr("pad_size is {'height': 900, 'width': 900}"));
  EXPECT_EQ(ErrorOf("DetrImageProcessor", R"("do_pad": false, "pad_size": {"height": 900, "width": 900})"),
            "");
  EXPECT_THAT(ErrorOf("DPTImageProcessor", R"("do_pad": true, "size_divisor": 14)"),
              HasSubstr("size_divisor is 14"));
  EXPECT_THAT(ErrorOf("DPTImageProcessor", R"("do_pad": true)"), HasSubstr("do_pad is true"));
}

TEST(HuggingFace, KeysThatAreNotUnderstoodAreErrors) {
  for (const char* key : {"do_thumbnail", "do_align_long_axis", "do_something", "do_color_quantize"}) {
    const std::string quoted = "\"" + std::string(key) + "\"";
    EXPECT_THAT(ErrorOf("ViTImageProcessor", quoted + ": true"), HasSubstr(key));
    EXPECT_EQ(ErrorOf("ViTImageProcessor", quoted + ": false"), "");
  }
  EXPECT_THAT(ErrorOf("ViTImageProcessor", R"("data_format": "channels_last")"), HasSubstr("data_format"));
  EXPECT_THAT(ErrorOf("ViTImageProcessor", R"("resample": 0)"), HasSubstr("resample is 0"));
  EXPECT_THAT(ErrorOf("ViTImageProcessor", R"("do_resize": false)"), HasSubstr("do_resize is false"));
  EXPECT_THAT(ErrorOf("ViTImageProcessor", R"("size": {"longest_edge": 800})"),
              HasSubstr("'longest_edge': 800"));
}

TEST(HuggingFace, KeysWithoutEffectOnPicturesAreTaken) {
  EXPECT_EQ(ErrorOf("SegformerImageProcessor", R"("do_reduce_labels": true, "reduce_labels": true,
                    "do_convert_rgb": true, "processor_class": "X", "use_fast": true)"),
            "");
}

TEST(HuggingFace, SizesThatTheDescriptionCannotSayAreErrors) {
  EXPECT_THAT(ErrorOf("DetrImageProcessor", R"("size": {"shortest_edge": 800, "longest_edge": 600})"),
              HasSubstr("longest_edge of at least the shortest_edge"));
  EXPECT_THAT(ErrorOf("CLIPImageProcessor", R"("size": 200, "crop_size": 224)"),
              HasSubstr("crop_size is 224"));
}

TEST(HuggingFace, EveryClassHasALabel) {
  const auto labels = [](const std::string& names) {
    return ReadHuggingFace(R"({"architectures": ["ViTForImageClassification"], "id2label": )" + names + "}",
                           R"({"image_processor_type": "ViTImageProcessor"})")
        .labels;
  };
  EXPECT_THAT(labels(R"({"1": "dog", "0": "cat"})"), ::testing::ElementsAre("cat", "dog"));
  for (const char* names : {R"({"0": "cat", "2": "dog"})", R"({"0": "cat", "1": 7})"}) {
    try {
      labels(names);
      FAIL() << names;
    } catch (const LoadError& error) {
      EXPECT_THAT(error.what(), HasSubstr("id2label has 2 names, but none for 1"));
    }
  }
}

TEST(HuggingFace, LabelsAreBounded) {
  const auto why_not = [](const std::string& names) -> std::string {
    try {
      ReadHuggingFace(R"({"architectures": ["ViTForImageClassification"], "id2label": {)" + names + "}}",
                      R"({"image_processor_type": "ViTImageProcessor"})");
    } catch (const LoadError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(why_not(R"("0": ")" + std::string(256, 'x') + '"'), "");
  EXPECT_THAT(why_not(R"("0": "a", "1": ")" + std::string(257, 'x') + '"'),
              HasSubstr("config.json: id2label has a name of 257 bytes for 1, expected 1 to 256"));
  EXPECT_THAT(why_not(R"("0": "")"), HasSubstr("a name of 0 bytes for 0"));
  std::string many = R"("0": "x")";
  for (int i = 1; i <= 65'536; ++i) many += ",\"" + std::to_string(i) + R"(": "x")";
  EXPECT_THAT(why_not(many), HasSubstr("id2label has 65537 names, expected at most 65536"));
}

TEST(HuggingFace, ErrorsBeginWithTheirFile) {
  const auto why_not = [](const char* config, const char* processor) -> std::string {
    try {
      ReadHuggingFace(config, processor);
    } catch (const LoadError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(why_not("{", "{}"), ::testing::StartsWith("config.json: JSON at byte 1"));
  EXPECT_THAT(why_not("{}", "{"), ::testing::StartsWith("preprocessor_config.json: JSON at byte 1"));
  EXPECT_THAT(why_not(R"({"architectures": ["ViTModel"]})", "{}"),
              ::testing::StartsWith("preprocessor_config.json: image_processor_type is missing"));
}

TEST(HuggingFace, ScoresAreSigmoidsOrASoftmaxByTheArchitecture) {
  const auto head = [](const std::string& architecture) {
    return Read("DeformableDetrImageProcessor", "", architecture + "ForObjectDetection").head;
  };
  for (const char* name : {"ConditionalDetr", "DeformableDetr", "DFine", "LwDetr", "RTDetr", "RTDetrV2"}) {
    EXPECT_EQ(head(name).activation, ScoreActivation::kSigmoid) << name;
    EXPECT_FALSE(head(name).no_object) << name;
  }
  for (const char* name : {"Detr", "TableTransformer", "Yolos"}) {
    EXPECT_EQ(head(name).activation, ScoreActivation::kSoftmax) << name;
    EXPECT_TRUE(head(name).no_object) << name;
  }
  EXPECT_THAT(ErrorOf("DeformableDetrImageProcessor", "", "DetaForObjectDetection"),
              AllOf(HasSubstr("'DetaForObjectDetection'"), HasSubstr("sigmoids or a softmax"),
                    HasSubstr("saccade.json")));
}

TEST(HuggingFace, DetectorsListAsManyAsTheirProcessorDoes) {
  const auto listed = [](const std::string& architecture, const std::string& members = "") {
    const std::string config = R"({"architectures": [")" + architecture + R"(ForObjectDetection"])" + members;
    return ReadHuggingFace(config + "}", R"({"image_processor_type": "DetrImageProcessor"})")
        .head.max_detections;
  };
  EXPECT_EQ(listed("RTDetr"), 300);
  EXPECT_EQ(listed("RTDetrV2", R"(, "num_queries": 250)"), 250);
  EXPECT_EQ(listed("DFine", R"(, "num_queries": 20000)"), 10'000);
  EXPECT_EQ(listed("TableTransformer", R"(, "num_queries": 125)"), 125);
  EXPECT_EQ(listed("Yolos", R"(, "num_detection_tokens": 200)"), 200);
  EXPECT_EQ(listed("Detr"), 100);
  EXPECT_EQ(listed("DeformableDetr", R"(, "num_queries": 300)"), 100) << "its processor lists 100 pairs";
  for (const char* wrong : {"0", "1.5", "\"300\"", "null"}) {
    EXPECT_THROW(listed("RTDetr", std::string(R"(, "num_queries": )") + wrong), LoadError) << wrong;
  }
}

TEST(HuggingFace, ManyLabelsTakeLittleMoreTimeThanTheirJson) {
  constexpr size_t kCount = 65'536;
  std::string config = R"({"architectures": ["ResNetForImageClassification"], "id2label": {)";
  for (size_t i = 0; i < kCount; ++i) {
    const std::string number = std::to_string(kCount - 1 - i);
    config += (i == 0 ? "\"" : ",\"") + number + "\":\"label " + number + '"';
  }
  config += "}}";
  std::vector<std::string> labels;
  const double of_json = ThreadSeconds([&] { ParseJsonTree(config); });
  const double of_both = ThreadSeconds(
      [&] { labels = ReadHuggingFace(config, R"({"image_processor_type": "ViTImageProcessor"})").labels; });
  ASSERT_EQ(labels.size(), kCount);
  EXPECT_EQ(labels.front(), "label 0");
  EXPECT_EQ(labels.back(), "label 65535");
  // Looking at all names for each label takes hundreds of times as long.
  EXPECT_LT(of_both, 40 * of_json);
}

TEST(HuggingFace, ClassesOfTheirOwnHaveSigmoids) {
  const auto activation = [](const std::string& members) {
    return ReadHuggingFace(R"({"architectures": ["ViTForImageClassification"])" + members + "}",
                           R"({"image_processor_type": "ViTImageProcessor"})")
        .head.activation;
  };
  EXPECT_EQ(activation(""), ScoreActivation::kSoftmax);
  EXPECT_EQ(activation(R"(, "problem_type": "single_label_classification")"), ScoreActivation::kSoftmax);
  EXPECT_EQ(activation(R"(, "problem_type": "multi_label_classification")"), ScoreActivation::kSigmoid);
  EXPECT_EQ(activation(R"(, "problem_type": null, "id2label": {"0": "cat", "1": "dog"})"),
            ScoreActivation::kSoftmax);
  EXPECT_EQ(activation(R"(, "id2label": {"0": "cat"})"), ScoreActivation::kSigmoid)
      << "the softmax of one class is always 1";
  EXPECT_THROW(activation(R"(, "problem_type": "regression")"), LoadError);
}

TEST(HuggingFace, ACropDoesNotGoWithPositions) {
  EXPECT_THAT(ErrorOf("MobileViTImageProcessor", R"("size": 544, "crop_size": 512)",
                      "MobileViTForSemanticSegmentation"),
              HasSubstr("positions in the whole picture"));
}

}  // namespace
}  // namespace saccade::models
