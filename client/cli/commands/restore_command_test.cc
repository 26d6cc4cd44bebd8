#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "client/cli/drawing/testing/pictures.h"
#include "client/cli/input/volume_file.h"
#include "client/cli/output/names.h"
#include "client/cli/output/progress_bar.h"
#include "client/cli/testing/command_test.h"

namespace saccade::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr VolumeShape kShape{3, 5, 7, VoxelType::kUint16};

// The value of each voxel is its index.
std::string Counting() {
  std::vector<uint16_t> voxels;
  for (uint16_t i = 0; i < 3 * 5 * 7; ++i) voxels.push_back(i);
  std::string bytes(voxels.size() * sizeof(uint16_t), '\0');
  std::memcpy(bytes.data(), voxels.data(), bytes.size());
  return bytes;
}

Restoration Restored() {
  Restoration answer;
  answer.model = "net";
  answer.version = 2;
  answer.batch_size = 1;
  answer.timings.infer = absl::Milliseconds(7);
  answer.picture_width = kShape.width;
  answer.picture_height = kShape.height;
  answer.shape = kShape;
  answer.voxels = Counting();
  answer.min = 0.5f;
  answer.max = 104;
  return answer;
}

class RestoreCommandTest : public CommandTest {
 protected:
  RestoreCommandTest() {
    daemon_.SetPredict([](const FakeRequest&) { return Restored(); });
  }

  // Writes into the folder "out".
  RunResult Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"-o", out_});
    return RunCommand("restore", arguments);
  }

  const std::filesystem::path out_ = folder_ / "out";
};

TEST_F(RestoreCommandTest, WritesTheVolumeAndItsMiddlePlane) {
  daemon_.SetPredict([](const FakeRequest& request) {
    EXPECT_EQ(request.picture, "tiff");
    EXPECT_FALSE(request.raw.has_value());
    EXPECT_EQ(request.restore.type, std::nullopt);
    EXPECT_EQ(request.request.version, 2);
    EXPECT_EQ(request.request.priority, -5);
    return Restored();
  });
  const std::string path = File("worm.tif", "tiff");
  const RunResult run = Run({path, "--model-version", "2", "--priority", "-5"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith(path + "  7x5  net 2  "));
  EXPECT_EQ(Lines(run), "  3x5x7 uint16, 0.5 to 104\n");
  EXPECT_EQ(run.err, "wrote " + (out_ / "worm.restored.tif").string() + "\nwrote " +
                         (out_ / "worm.restored.png").string() + "\n");
  std::vector<cv::Mat> pages;
  ASSERT_TRUE(cv::imreadmulti(out_ / "worm.restored.tif", pages, cv::IMREAD_UNCHANGED));
  ASSERT_EQ(pages.size(), 3u);
  ASSERT_EQ(pages[2].type(), CV_16UC1);
  EXPECT_EQ(pages[2].at<uint16_t>(4, 6), 104);
  const cv::Mat plane = ReadPng(out_ / "worm.restored.png");
  ASSERT_EQ(plane.type(), CV_8UC1);
  ASSERT_EQ(plane.size(), cv::Size(7, 5));
  EXPECT_EQ(plane.at<uint8_t>(0, 0), 0);
  EXPECT_EQ(plane.at<uint8_t>(2, 3), 128);
  EXPECT_EQ(plane.at<uint8_t>(4, 6), 255);
}

TEST_F(RestoreCommandTest, SendsRawVoxelsAndWritesThem) {
  const std::string voxels = Counting();
  daemon_.SetPredict([&](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    EXPECT_EQ(request.picture, voxels);
    EXPECT_EQ(request.restore.type, VoxelType::kFloat32);
    if (!request.raw) return absl::InvalidArgumentError("no shape");
    EXPECT_EQ(NameOf(*request.raw), "3x5x7 uint16");
    return Restored();
  });
  const std::string path = File("worm.raw", voxels);
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--shape", "3x5x7", "--type", "uint16"},
        std::vector<std::string>{"--type", "uint16", "--shape", "3x5x7"}}) {
    std::vector<std::string> arguments = {path, "--raw", "--output-type", "float32"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const RunResult run = Run(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_TRUE(Read(out_ / "worm.restored.raw") == voxels);
  }
  EXPECT_TRUE(std::filesystem::exists(out_ / "worm.restored.png"));
  EXPECT_FALSE(std::filesystem::exists(out_ / "worm.restored.tif"));
}

TEST_F(RestoreCommandTest, WritesOneJsonDocument) {
  const std::string good = File("good.tif", "good"), bad = File("bad.tif", "bad");
  daemon_.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    if (request.picture == "bad") return absl::InvalidArgumentError("data: not a TIFF file");
    return Restored();
  });
  const RunResult run = Run({good, bad, "/nonesuch.tif", "--json"});
  EXPECT_EQ(run.exit_code, 67);
  EXPECT_THAT(run.err, HasSubstr("/bad.tif: data: not a TIFF file (INVALID_ARGUMENT)\n"));
  EXPECT_THAT(run.err, HasSubstr("/nonesuch.tif cannot be opened: No such file or directory\n"));
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["version"], 1);
  ASSERT_EQ(json["results"].size(), 3u);
  const auto& first = json["results"][0];
  EXPECT_EQ(first["file"], good);
  EXPECT_EQ(first["volume"], nlohmann::json::parse(R"(
      {"depth": 3, "height": 5, "width": 7, "type": "uint16", "min": 0.5, "max": 104})"));
  EXPECT_EQ(first["restored"], (out_ / "good.restored.tif").string());
  EXPECT_EQ(first["plane"], (out_ / "good.restored.png").string());
  EXPECT_EQ(first["timings_ms"]["infer"], 7.0);
  EXPECT_EQ(json["results"][1]["error"]["code"], "INVALID_ARGUMENT");
  EXPECT_EQ(json["results"][2]["error"]["code"], "UNREADABLE_FILE");
  EXPECT_EQ(json["results"][2]["error"]["file"], "/nonesuch.tif");
}

TEST_F(RestoreCommandTest, ReportsWhatIsWrongWithAFile) {
  EXPECT_THAT(Run({folder_}).err, HasSubstr("has no TIFF files in it\n"));
  const RunResult empty = Run({File("empty.tif", "")});
  EXPECT_EQ(empty.exit_code, 1);
  EXPECT_THAT(empty.err, HasSubstr("empty.tif is empty; expected a TIFF file\n"));
  const RunResult size = Run({File("worm.raw", "12345"), "--shape", "1x2x3", "--type", "uint8"});
  EXPECT_EQ(size.exit_code, 1);
  EXPECT_THAT(size.err, HasSubstr("worm.raw has 5 bytes; expected 6 for 1x2x3 uint8\n"));
}

TEST_F(RestoreCommandTest, PrintsTheDaemonsError) {
  daemon_.SetRestore(
      {.early = absl::FailedPreconditionError("'net' is a model for stereo, not restoration")});
  const RunResult run = Run({File("worm.tif", "tiff")});
  EXPECT_EQ(run.exit_code, 73);
  EXPECT_THAT(run.err,
              HasSubstr("worm.tif: 'net' is a model for stereo, not restoration (FAILED_PRECONDITION)"));
  EXPECT_EQ(run.out, "");
  EXPECT_FALSE(std::filesystem::exists(out_ / "worm.restored.tif"));
}

TEST_F(RestoreCommandTest, WritesNothingOfAnIncompleteVolume) {
  daemon_.SetPredict([](const FakeRequest&) {
    Restoration answer = Restored();
    answer.voxels.pop_back();
    return answer;
  });
  const RunResult run = Run({File("worm.tif", "tiff")});
  EXPECT_EQ(run.exit_code, 77);
  EXPECT_THAT(run.err, HasSubstr("announced 210 bytes of voxels and sent 209"));
  EXPECT_TRUE(std::filesystem::is_empty(out_));
}

TEST_F(RestoreCommandTest, FailsIfTheFileCannotBeWritten) {
  std::filesystem::create_directories(out_ / "worm.restored.tif");
  const RunResult run = Run({File("worm.tif", "tiff")});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("worm.tif: no output: could not write "));
}

// Floats may have any value; a plane with a single value has no range.
TEST_F(RestoreCommandTest, DrawsPlanesWithoutARange) {
  for (const float value : {3.0f, std::nanf("")}) {
    daemon_.SetPredict([value](const FakeRequest&) {
      Restoration answer = Restored();
      answer.shape = {1, 2, 3, VoxelType::kFloat32};
      answer.voxels.clear();
      for (int i = 0; i < 6; ++i) answer.voxels.append(reinterpret_cast<const char*>(&value), sizeof(value));
      return answer;
    });
    EXPECT_EQ(Run({File("worm.tif", "tiff")}).exit_code, 0);
    EXPECT_EQ(cv::countNonZero(ReadPng(out_ / "worm.restored.png")), 0);
  }
}

TEST_F(RestoreCommandTest, ShowsItsProgressOnATerminal) {
  daemon_.SetRestore({.progress = {0, 0.5, 0.5001}});
  const std::string path = File("worm.tif", "tiff");
  std::istringstream in;
  for (const std::string quiet : {"", "-q"}) {
    std::ostringstream out, err;
    Console console{in, out, err};
    console.live = true;
    std::vector<std::string> arguments = {"restore", "-m", "net", "--url", daemon_.url(), path, "-o", out_};
    if (!quiet.empty()) arguments.push_back(quiet);
    EXPECT_EQ(RunApp(arguments, console), 0) << err.str();
    if (quiet.empty()) {
      const std::string clear = "\r\033[K", name = path + "  ";
      EXPECT_THAT(err.str(), StartsWith(clear + name + "sending   0%  " + clear + name + "restoring   0%  " +
                                        clear + name + "restoring  50%  ############" + clear + "wrote "));
    } else {
      EXPECT_EQ(err.str(), "");
    }
  }
  EXPECT_THAT(Run({path}).err, Not(HasSubstr("\033")));
}

TEST_F(RestoreCommandTest, HasALongTimeoutByDefault) {
  EXPECT_THAT(RunWith({"restore", "--help"}).out, HasSubstr("=1800\n"));
  daemon_.SetRestore({.progress = {0.5}, .endless = true});
  const RunResult run = Run({File("worm.tif", "tiff"), "--timeout", "0.1"});
  EXPECT_EQ(run.exit_code, 68);
  EXPECT_THAT(run.err, HasSubstr("within 100ms"));
}

TEST_F(RestoreCommandTest, ReportsAnAnswerOfAnotherTask) {
  daemon_.SetPredict([](const FakeRequest&) { return Disparity(); });
  const RunResult run = Run({File("worm.tif", "tiff")});
  EXPECT_EQ(run.exit_code, 77);
  EXPECT_THAT(run.err, HasSubstr("answered with a disparity instead of a restoration"));
}

TEST(ParseShape, TakesThreeNumbers) {
  const auto shape = ParseShape("24x512x256");
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_EQ(NameOf(*shape), "24x512x256 uint8");
  for (const char* bad : {"", "24x512", "24x512x256x3", "0x1x1", "1x-1x1", "axbxc", "1x1x1.5",
                          "2000000000x2000000000x2000000000"}) {
    EXPECT_FALSE(ParseShape(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace saccade::client
