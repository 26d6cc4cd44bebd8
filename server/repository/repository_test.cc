#include "server/repository/repository.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/repository/test_repository.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::Field;
using ::testing::HasSubstr;

constexpr char kConfig[] = "parameters { key: \"architecture\" value { string_value: \"sanet\" } }";

std::string ErrorOf(const TestRepository& repository, const std::string& name) {
  return std::string(ReadModel(repository.string(), name).status().message());
}

TEST(RepositoryTest, ReadsAModel) {
  TestRepository repository;
  repository.Write("m/config.pbtxt", kConfig);
  repository.Write("m/labels.txt", "cat\ndog\n");
  repository.Write("m/10/weights.safetensors", "w");
  repository.Write("m/9/weights.pt", "w");
  repository.Write("m/notes/readme", "passed over");
  const auto model = ReadModel(repository.string(), "m");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->settings.name, "m");
  EXPECT_THAT(model->settings.labels, ElementsAre("cat", "dog"));
  ASSERT_EQ(model->versions.size(), 2u);
  EXPECT_EQ(model->versions[0].version, 9);
  EXPECT_THAT(model->versions[0].weights_path, EndsWith("m/9/weights.pt"));
  EXPECT_EQ(model->versions[1].version, 10);
  EXPECT_THAT(model->versions[1].weights_path, EndsWith("m/10/weights.safetensors"));
}

TEST(RepositoryTest, OneBrokenModelDoesNotHideTheOthers) {
  TestRepository repository;
  repository.Write("good/config.pbtxt", kConfig);
  repository.Write("good/1/weights.safetensors", "w");
  repository.Write("empty/1/weights.safetensors", "w");
  repository.Write("bad name\n/config.pbtxt", kConfig);
  repository.Write(".hidden/config.pbtxt", kConfig);
  repository.Write("lost+found/x", "");
  repository.Write("README", "a plain file");
  const auto scan = ScanRepository(repository.string());
  ASSERT_TRUE(scan.ok()) << scan.status();
  ASSERT_EQ(scan->models.size(), 1u);
  EXPECT_EQ(scan->models[0].settings.name, "good");
  EXPECT_THAT(scan->broken,
              ElementsAre(Field(&BrokenModel::name, "bad name\\n"), Field(&BrokenModel::name, "empty")));
  EXPECT_THAT(std::string(scan->broken[0].status.message()), HasSubstr("is not a model name"));
  EXPECT_THAT(std::string(scan->broken[1].status.message()),
              HasSubstr("empty/config.pbtxt is missing, so the architecture is not known"));
}

TEST(RepositoryTest, ARepositoryThatIsNotThereIsAnError) {
  TestRepository repository;
  EXPECT_EQ(ScanRepository(repository.string() + "/nowhere").status().code(), absl::StatusCode::kNotFound);
}

TEST(RepositoryTest, NamesNeverReachTheFileSystemUnchecked) {
  TestRepository repository;
  for (const char* name : {"", ".", "..", "../m", "a/b", ".hidden", "m\n", "\xC3\xBC"}) {
    EXPECT_EQ(ReadModel(repository.string(), name).status().code(), absl::StatusCode::kInvalidArgument)
        << name;
  }
  EXPECT_FALSE(CheckModelName(std::string(129, 'a')).ok());
  EXPECT_TRUE(CheckModelName(std::string(128, 'a')).ok());
  EXPECT_EQ(ReadModel(repository.string(), "nowhere").status().code(), absl::StatusCode::kNotFound);
}

TEST(RepositoryTest, WeightsAreChosenByName) {
  TestRepository repository;
  repository.Write("m/config.pbtxt", kConfig);
  repository.Write("m/1/epoch_3.pth", "w");
  repository.Write("m/1/log.csv", "not weights");
  EXPECT_THAT(ReadModel(repository.string(), "m")->versions[0].weights_path, EndsWith("/epoch_3.pth"));
  repository.Write("m/1/epoch_4.pth", "w");
  EXPECT_THAT(ErrorOf(repository, "m"),
              HasSubstr("m/1: holds several weights files (epoch_3.pth, epoch_4.pth); name one"));
  repository.Write("m/1/model.safetensors", "w");
  EXPECT_THAT(ReadModel(repository.string(), "m")->versions[0].weights_path, EndsWith("/model.safetensors"));
  repository.Write("m/1/weights.safetensors", "w");
  EXPECT_THAT(ReadModel(repository.string(), "m")->versions[0].weights_path,
              EndsWith("/weights.safetensors"));
  const std::string named = absl::StrCat(kConfig, "parameters { key: \"weights\" value { string_value: \"");
  repository.Write("m/config.pbtxt", named + "epoch_4.pth\" } }");
  EXPECT_THAT(ReadModel(repository.string(), "m")->versions[0].weights_path, EndsWith("/epoch_4.pth"));
  repository.Write("m/config.pbtxt", named + "epoch_5.pth\" } }");
  EXPECT_THAT(ErrorOf(repository, "m"), HasSubstr("m/1: holds no weights file 'epoch_5.pth'"));
}

TEST(RepositoryTest, VersionsArePositiveIntegers) {
  TestRepository repository;
  repository.Write("m/config.pbtxt", kConfig);
  repository.Write("m/v1/weights.pt", "w");
  EXPECT_THAT(ErrorOf(repository, "m"), HasSubstr("m: holds no version; put the weights into m/1/"));
  for (const std::string version : {"0", "01", "99999999999999999999"}) {
    repository.Write("m/" + version + "/weights.pt", "w");
    EXPECT_THAT(ErrorOf(repository, "m"),
                HasSubstr("m/" + version + ": not a version; expected a positive integer"));
    std::filesystem::remove_all(repository.path() / "m" / version);
  }
}

TEST(RepositoryTest, AVersionWithoutWeightsIsAnError) {
  TestRepository repository;
  repository.Write("m/config.pbtxt", kConfig);
  repository.Write("m/1/weights.pt", "w");
  std::filesystem::create_directory(repository.path() / "m" / "2");
  EXPECT_THAT(ErrorOf(repository, "m"), HasSubstr("m/2: holds no weights; expected weights.safetensors"));
}

TEST(RepositoryTest, LinksThatLeadOutAreRefused) {
  TestRepository repository, elsewhere;
  elsewhere.Write("weights.pt", "w");
  elsewhere.Write("model/config.pbtxt", kConfig);
  repository.Write("m/config.pbtxt", kConfig);
  std::filesystem::create_directory(repository.path() / "m" / "1");
  std::filesystem::create_symlink(elsewhere.path() / "weights.pt",
                                  repository.path() / "m" / "1" / "weights.pt");
  EXPECT_THAT(ErrorOf(repository, "m"), HasSubstr("m/1/weights.pt: a symbolic link leads out"));
  std::filesystem::create_symlink(elsewhere.path() / "model", repository.path() / "linked");
  EXPECT_THAT(ErrorOf(repository, "linked"), HasSubstr("linked/config.pbtxt: a symbolic link leads out"));
}

TEST(RepositoryTest, FilesAreBoundedAndUtf8) {
  TestRepository repository;
  repository.Write("m/1/weights.pt", "w");
  repository.Write("m/config.pbtxt", absl::StrCat(kConfig, std::string(1 << 20, ' ')));
  EXPECT_THAT(ErrorOf(repository, "m"), HasSubstr("m/config.pbtxt: larger than the 1048576 bytes allowed"));
  repository.Write("m/config.pbtxt", kConfig);
  repository.Write("m/labels.txt", "gr\xFC\xDF\n");
  EXPECT_THAT(ErrorOf(repository, "m"), HasSubstr("m/labels.txt: not UTF-8 text"));
}

TEST(RepositoryTest, ANamedLabelsFileMustBeThere) {
  TestRepository repository;
  repository.Write(
      "m/config.pbtxt",
      absl::StrCat(kConfig, "parameters { key: \"labels\" value { string_value: \"names.txt\" } }"));
  repository.Write("m/1/weights.pt", "w");
  EXPECT_THAT(ErrorOf(repository, "m"), HasSubstr("m/names.txt: cannot open it"));
  repository.Write("m/names.txt", "cat");
  EXPECT_THAT(ReadModel(repository.string(), "m")->settings.labels, ElementsAre("cat"));
}

}  // namespace
}  // namespace saccade::server
