#include "client/cli/commands/detect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/cli/drawing/testing/pictures.h"
#include "client/cli/testing/command_test.h"
#include "client/cpp/testing/encode_mask.h"

namespace saccade::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kWidth = 400, kHeight = 300;

// A car with an elliptic mask, and a detection without a name or a mask.
Detections Street() {
  Detections answer;
  answer.model = "net";
  answer.version = 2;
  answer.batch_size = 1;
  answer.timings.infer = absl::Milliseconds(7);
  answer.picture_width = kWidth;
  answer.picture_height = kHeight;
  const auto mask = EllipseMask(kWidth, kHeight, {150, 150}, {50, 30});
  answer.items = {{{100, 120, 200.5f, 180}, 0.9f, 3, "car", EncodeMask(kHeight, kWidth, mask), {}, {}, {}},
                  {{250.25f, 20, 300, 290}, 0.5f, 12, "", {}, {}, {}, {}}};
  return answer;
}

Detections Nothing() {
  Detections answer = Street();
  answer.items.clear();
  return answer;
}

class Detect : public CommandTest {
 protected:
  Detect() {
    daemon_.SetPredict([](const FakeRequest&) { return Street(); });
  }

  RunResult Run(const std::vector<std::string>& arguments, const std::string& input = "x") {
    return RunCommand("detect", arguments, input);
  }

  nlohmann::json RunJson(const std::vector<std::string>& arguments) {
    const RunResult run = Run(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return nlohmann::json::parse(run.out);
  }
};

TEST_F(Detect, PrintsOneLinePerDetection) {
  const RunResult run = Run({"-"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith("-  400x300  net 2  "));
  const int64_t area = Street().items[0].mask->area;
  ASSERT_EQ(area, 4831);
  EXPECT_EQ(Lines(run),
            "   90.0%   3  car  x 100-200  y 120-180  mask 4,831 px\n"
            "   50.0%  12       x 250-300  y 20-290\n");
}

TEST_F(Detect, PrintsThatNothingWasFound) {
  daemon_.SetPredict([](const FakeRequest&) { return Nothing(); });
  const RunResult run = Run({"-"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(Lines(run), "  nothing found\n");
  EXPECT_EQ(RunJson({"-", "--json"})["results"][0]["detections"], nlohmann::json::array());
  EXPECT_EQ(RunJson({"-", "--format", "coco"}), nlohmann::json::array());
  EXPECT_EQ(RunJson({"-", "--format", "roboflow"})["predictions"], nlohmann::json::array());
}

TEST_F(Detect, SendsTheOptions) {
  daemon_.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    EXPECT_EQ(request.model, "net");
    EXPECT_EQ(request.request.version, 2);
    EXPECT_EQ(request.detect.score_threshold, 0.25f);
    EXPECT_EQ(request.detect.top_k, 9);
    EXPECT_EQ(request.detect.mask_threshold, 0.75f);
    EXPECT_TRUE(request.detect.masks);
    EXPECT_THAT(request.detect.classes, ElementsAre(7, 1));
    return Nothing();
  });
  EXPECT_EQ(Run({"-", "--score-threshold", "0.25", "--top-k", "9", "--mask-threshold", "0.75", "--class", "7",
                 "--class", "1", "--model-version", "2"})
                .exit_code,
            0);
  daemon_.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    EXPECT_FALSE(request.detect.masks);
    EXPECT_EQ(request.detect.score_threshold, std::nullopt);
    return Nothing();
  });
  EXPECT_EQ(Run({"-", "--no-masks"}).exit_code, 0);
  EXPECT_EQ(Run({"-", "--masks", "none"}).exit_code, 0);
}

TEST_F(Detect, WritesMasksInTheRequestedForm) {
  daemon_.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    Detections answer = Street();
    Detection& item = answer.items[0];
    if (request.detect.mask_form != MaskForm::kRle) item.mask.reset();
    const cv::Mat part(3, 4, CV_8UC1, cv::Scalar(255));
    if (request.detect.mask_form == MaskForm::kPng)
      item.mask_picture = MaskPicture{101, 121, 4, 3, Encoded(part), 12};
    if (request.detect.mask_form == MaskForm::kPolygons)
      item.mask_polygons =
          MaskPolygons{.polygons = {{{101, 121, 104, 121, 104, 123, 101, 123}, false}}, .area = 12};
    return answer;
  });
  const auto polygons = RunJson({"-", "--masks", "polygons", "--json"})["results"][0]["detections"][0];
  EXPECT_FALSE(polygons.contains("mask"));
  EXPECT_EQ(polygons["mask_polygons"], nlohmann::json::parse(R"(
      {"polygons": [{"points": [101, 121, 104, 121, 104, 123, 101, 123], "hole": false}], "area": 12})"));
  const auto picture =
      RunJson({"-", "--masks", "png", "--json"})["results"][0]["detections"][0]["mask_picture"];
  EXPECT_EQ(picture["x"], 101);
  EXPECT_EQ(picture["height"], 3);
  EXPECT_EQ(picture["area"], 12);
  EXPECT_THAT(picture["png"].get<std::string>(), StartsWith("iVBORw0KGgo"))
      << "a PNG's first bytes in base64";
  EXPECT_TRUE(RunJson({"-", "--masks", "rle", "--json"})["results"][0]["detections"][0].contains("mask"));
  EXPECT_THAT(Lines(Run({"-", "--masks", "png"})), HasSubstr("mask 12 px"));

  const std::string path = File("street.png", Encoded(PlainPicture(kWidth, kHeight)));
  for (const char* form : {"png", "polygons"}) {
    RunJson({path, "--masks", form, "-o", folder_ / form, "--json"});
    const cv::Mat overlay = ReadPng(folder_ / form / "street.detect.overlay.png");
    EXPECT_NE(overlay.at<cv::Vec3b>(122, 102), cv::Vec3b(90, 120, 60)) << form << ": in the mask";
  }
}

TEST_F(Detect, RejectsMasksThatDoNotFitThePicture) {
  for (const char* format : {"coco", "roboflow"}) {
    const RunResult run = Run({"-", "--format", format, "--masks", "polygons"});
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.err, HasSubstr("need masks as run lengths; leave --masks out"));
    EXPECT_EQ(Run({"-", "--format", format, "--masks", "none"}).exit_code, 0);
  }
  EXPECT_THAT(Run({"-", "--masks", "none", "--mask-threshold", "0.5"}).err,
              HasSubstr("--mask-threshold needs masks"));
  EXPECT_EQ(Run({"-", "--masks", "svg"}).exit_code, 2);
  EXPECT_EQ(Run({"-", "--masks", "png", "--no-masks"}).exit_code, 2);
}

TEST_F(Detect, TakesClassesByName) {
  Model model;
  model.name = "net";
  model.labels = {"background", "person", "traffic light"};
  daemon_.SetModels({model});
  daemon_.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    EXPECT_THAT(request.detect.classes, ElementsAre(2, 7));
    return Nothing();
  });
  EXPECT_EQ(Run({"-", "--class", "traffic light", "--class", "7"}).exit_code, 0);

  const RunResult unknown = Run({"-", "--class", "tram"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("--class tram: no class of model 'net' has this name"));
  model.labels.clear();
  daemon_.SetModels({model});
  EXPECT_THAT(Run({"-", "--class", "tram"}).err, HasSubstr("'net' has no class names; give an index"));
  daemon_.SetModels({});
  EXPECT_EQ(Run({"-", "--class", "tram"}).exit_code, 69);
}

TEST_F(Detect, WritesOneJsonDocument) {
  const auto json = RunJson({"-", "--json"});
  EXPECT_EQ(json["version"], 1);
  const auto& result = json["results"][0];
  EXPECT_EQ(result["file"], "-");
  EXPECT_EQ(result["picture"]["width"], kWidth);
  EXPECT_EQ(result["timings_ms"]["infer"], 7.0);
  nlohmann::json expected = nlohmann::json::parse(R"([
      {"class_index": 3, "label": "car", "score": 0.9,
       "box": {"x_min": 100, "y_min": 120, "x_max": 200.5, "y_max": 180},
       "mask": {"size": [300, 400], "area": 4831}},
      {"class_index": 12, "label": "", "score": 0.5,
       "box": {"x_min": 250.25, "y_min": 20, "x_max": 300, "y_max": 290}}])");
  expected[0]["mask"]["counts"] = Street().items[0].mask->counts;
  EXPECT_EQ(result["detections"], expected);
}

TEST_F(Detect, WritesKeypoints) {
  daemon_.SetPredict([](const FakeRequest&) -> absl::StatusOr<AnyAnswer> {
    Detections answer = Street();
    answer.items[0].mask.reset();
    answer.items[0].keypoints = {{3.5f, 4.25f, 0.75f}, {-2, 40.5f, 0.25f}, {7, 8, 0}, {1.5f, 2.5f, 0.5f}};
    return answer;
  });
  const auto found = RunJson({"-", "--json"})["results"][0]["detections"];
  EXPECT_EQ(found[0]["keypoints"], nlohmann::json::parse(R"([
      {"x": 3.5, "y": 4.25, "score": 0.75}, {"x": -2, "y": 40.5, "score": 0.25},
      {"x": 7, "y": 8, "score": 0}, {"x": 1.5, "y": 2.5, "score": 0.5}])"));
  EXPECT_FALSE(found[1].contains("keypoints"));
  const auto coco = RunJson({"-", "--format", "coco"});
  EXPECT_EQ(coco[0]["keypoints"], nlohmann::json::parse("[3.5, 4.25, 2, -2, 40.5, 1, 0, 0, 0, 1.5, 2.5, 2]"));
  EXPECT_EQ(coco[0]["num_keypoints"], 3);
  EXPECT_FALSE(coco[1].contains("keypoints"));
  EXPECT_FALSE(coco[1].contains("num_keypoints"));
  EXPECT_EQ(Lines(Run({"-"})),
            "   90.0%   3  car  x 100-200  y 120-180  4 keypoints\n"
            "   50.0%  12       x 250-300  y 20-290\n");
}

TEST_F(Detect, NumbersCocoImagesByTheirFileNames) {
  const auto json =
      RunJson({File("000000000139.jpg", "a"), File("000000000285.jpg", "b"), "--format", "coco"});
  ASSERT_EQ(json.size(), 4u);
  nlohmann::json expected = nlohmann::json::parse(R"(
      {"image_id": 139, "category_id": 3, "bbox": [100, 120, 100.5, 60], "score": 0.9,
       "segmentation": {"size": [300, 400]}})");
  expected["segmentation"]["counts"] = Street().items[0].mask->counts;
  EXPECT_EQ(json[0], expected);
  EXPECT_EQ(json[1], nlohmann::json::parse(R"(
      {"image_id": 139, "category_id": 12, "bbox": [250.25, 20, 49.75, 270], "score": 0.5})"));
  EXPECT_EQ(json[2]["image_id"], 285);
}

TEST_F(Detect, NumbersCocoImagesByTheirIndexIfFileNamesAreNotDistinctNumbers) {
  const auto named = RunJson({File("7.jpg", "a"), File("street.jpg", "b"), "--format", "coco"});
  EXPECT_EQ(named[0]["image_id"], 0);
  EXPECT_EQ(named[2]["image_id"], 1);
  const auto twice = RunJson({File("7.jpg", "a"), File("7.png", "b"), "--format", "coco"});
  EXPECT_EQ(twice[0]["image_id"], 0);
  EXPECT_EQ(twice[2]["image_id"], 1);
}

TEST_F(Detect, OmitsFailedPicturesFromCocoAndKeepsTheIndicesOfOthers) {
  const RunResult run = Run({"/nonesuch.jpg", File("a.jpg", "a"), "--format", "coco"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("/nonesuch.jpg cannot be opened"));
  const auto json = nlohmann::json::parse(run.out);
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["image_id"], 1);
}

TEST_F(Detect, WritesWhatSupervisionReads) {
  const auto json = RunJson({"-", "--format", "roboflow"});
  EXPECT_EQ(json["image"], nlohmann::json::parse(R"({"width": 400, "height": 300})"));
  ASSERT_EQ(json["predictions"].size(), 2u);
  nlohmann::json first = json["predictions"][0];
  const nlohmann::json points = first["points"];
  first.erase("points");
  EXPECT_EQ(first, nlohmann::json::parse(R"(
      {"x": 150.25, "y": 150, "width": 100.5, "height": 60, "confidence": 0.9, "class": "car", "class_id": 3,
       "detection_id": "0.0"})"));
  std::vector<cv::Point> outline;
  for (const auto& point : points) outline.emplace_back(point["x"].get<int>(), point["y"].get<int>());
  cv::Mat filled(kHeight, kWidth, CV_8UC1, cv::Scalar(0));
  cv::fillPoly(filled, std::vector{outline}, cv::Scalar(255));
  EXPECT_EQ(std::vector<uint8_t>(filled.data, filled.data + filled.total()),
            EllipseMask(kWidth, kHeight, {150, 150}, {50, 30}));
  EXPECT_EQ(json["predictions"][1]["class"], "12");
  EXPECT_FALSE(json["predictions"][1].contains("points"));
  EXPECT_EQ(RunJson({"-", File("a.jpg", "a"), "--format", "roboflow"}).size(), 2u);
}

TEST_F(Detect, WritesAtLeastThreePointsPerMaskForSupervision) {
  daemon_.SetPredict([](const FakeRequest&) -> absl::StatusOr<AnyAnswer> {
    Detections answer = Street();
    std::vector<uint8_t> none(kWidth * kHeight);
    answer.items[0].mask = EncodeMask(kHeight, kWidth, none);
    none[5 * kWidth + 7] = 1;
    answer.items[1].mask = EncodeMask(kHeight, kWidth, none);
    return answer;
  });
  const auto json = RunJson({"-", "--format", "roboflow"});
  const auto centre = nlohmann::json::parse(R"({"x": 150, "y": 150})");
  EXPECT_EQ(json["predictions"][0]["points"], nlohmann::json({centre, centre, centre}));
  const auto pixel = nlohmann::json::parse(R"({"x": 7, "y": 5})");
  EXPECT_EQ(json["predictions"][1]["points"], nlohmann::json({pixel, pixel, pixel}));
}

TEST_F(Detect, DrawsMasksBoxesAndLabels) {
  const std::string path = File("street.png", Encoded(PlainPicture(kWidth, kHeight)));
  const auto json = RunJson({path, "-o", folder_ / "out", "--json"});
  const std::string written = folder_ / "out" / "street.detect.overlay.png";
  EXPECT_EQ(json["results"][0]["overlay"], written);
  const cv::Mat overlay = ReadPng(written);
  ASSERT_EQ(overlay.size(), cv::Size(kWidth, kHeight));
  const cv::Vec3b plain(90, 120, 60);
  EXPECT_EQ(overlay.at<cv::Vec3b>(10, 10), plain) << "beside everything";
  EXPECT_NE(overlay.at<cv::Vec3b>(150, 150), plain) << "in the mask";
  EXPECT_EQ(overlay.at<cv::Vec3b>(125, 105), plain) << "in the box, beside the mask";
  EXPECT_NE(overlay.at<cv::Vec3b>(179, 150), plain) << "on the box";
  EXPECT_NE(overlay.at<cv::Vec3b>(115, 105), plain) << "in the label";
  EXPECT_EQ(overlay.at<cv::Vec3b>(150, 270), plain) << "in the box without a mask";
}

TEST_F(Detect, DrawsThatNothingWasFound) {
  daemon_.SetPredict([](const FakeRequest&) { return Nothing(); });
  const std::string path = File("street.png", Encoded(PlainPicture(kWidth, kHeight)));
  RunJson({path, "-o", folder_, "--json"});
  EXPECT_NE(cv::norm(ReadPng(folder_ / "street.detect.overlay.png"), PlainPicture(kWidth, kHeight)), 0);
}

TEST_F(Detect, RejectsAnInvalidMask) {
  daemon_.SetPredict([](const FakeRequest&) -> absl::StatusOr<AnyAnswer> {
    Detections answer = Street();
    answer.items[0].mask->counts.clear();
    return answer;
  });
  const std::string path = File("street.png", Encoded(PlainPicture(kWidth, kHeight)));
  const RunResult run = Run({path, "-o", folder_});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("street.png: no output: mask: the run lengths cover 0 pixels"));
  EXPECT_THAT(run.out, HasSubstr("car"));
}

TEST_F(Detect, ReportsAnAnswerOfAnotherTask) {
  daemon_.SetPredict([](const FakeRequest&) { return Classification(); });
  const RunResult run = Run({"-"});
  EXPECT_EQ(run.exit_code, 77);
  EXPECT_THAT(run.err, HasSubstr("answered with a classification instead of detections"));
}

}  // namespace
}  // namespace saccade::client
