#include "server/repository/files.h"

#include <sys/stat.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/repository/testing/test_repository.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(RepositoryPathTest, RefusesWhatIsNoFolder) {
  TestRepository repository;
  repository.Write("file", "text");
  const auto missing = RepositoryPath::Root(repository.string() + "/nowhere");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(missing.status()), HasSubstr("nowhere"));
  const auto file = RepositoryPath::Root(repository.string() + "/file");
  EXPECT_THAT(Message(file.status()), HasSubstr("is not a directory"));
}

TEST(RepositoryPathTest, ReadsUpToTheBoundAndNotBeyond) {
  TestRepository repository;
  repository.Write("a/text", "12345678");
  const auto root = RepositoryPath::Root(repository.string());
  ASSERT_TRUE(root.ok()) << root.status();
  const RepositoryPath file = *root / "a" / "text";
  EXPECT_EQ(*file.ReadText(8), "12345678");
  EXPECT_THAT(Message(file.ReadText(7).status()), HasSubstr("a/text: is larger than the maximum of 7 bytes"));
  EXPECT_EQ((*root / "b").ReadText(8).status().code(), absl::StatusCode::kNotFound);
}

TEST(RepositoryPathTest, ALinkMayStayInsideButNotLeadOut) {
  TestRepository repository, elsewhere;
  repository.Write("real/text", "inside");
  elsewhere.Write("text", "outside");
  std::filesystem::create_symlink(repository.path() / "real" / "text", repository.path() / "inside");
  std::filesystem::create_symlink(elsewhere.path() / "text", repository.path() / "outside");
  // A folder next to the repository whose path has the repository's path as prefix.
  const std::string sibling = repository.string() + "_sibling";
  std::filesystem::create_directory(sibling);
  std::filesystem::create_symlink(sibling, repository.path() / "sibling");
  const auto root = RepositoryPath::Root(repository.string());
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(*(*root / "inside").ReadText(100), "inside");
  EXPECT_THAT(Message((*root / "outside").ReadText(100).status()),
              HasSubstr("leads out of the model repository"));
  EXPECT_THAT(Message((*root / "sibling").List().status()), HasSubstr("leads out of the model repository"));
  std::filesystem::remove(sibling);
}

TEST(RepositoryPathTest, ALinkKeepsItsNameAndItsFolder) {
  TestRepository repository, elsewhere;
  repository.Write("blobs/ab12", "inside");
  repository.Write("m/..data/1/mounted", "inside");
  std::filesystem::create_symlink("..data/1", repository.path() / "m" / "1");
  std::filesystem::create_symlink("../../../blobs/ab12",
                                  repository.path() / "m" / "..data" / "1" / "model.pt2");
  elsewhere.Write("1/text", "outside");
  std::filesystem::create_symlink(elsewhere.path() / "1" / "text", repository.path() / "m" / "1" / "outside");
  // The folder is outside, but its file is a link to one inside.
  std::filesystem::create_symlink(repository.path() / "blobs" / "ab12", elsewhere.path() / "1" / "back");
  std::filesystem::create_symlink(elsewhere.path() / "1", repository.path() / "m" / "2");
  // The repository itself is reached by a link.
  const std::filesystem::path mounted = elsewhere.path() / "mounted";
  std::filesystem::create_symlink(repository.path(), mounted);
  const auto root = RepositoryPath::Root(mounted.string());
  ASSERT_TRUE(root.ok()) << root.status();
  const std::filesystem::path folder = std::filesystem::canonical(repository.path()) / "m" / "..data" / "1";
  const RepositoryPath version = *root / "m" / "1";
  EXPECT_EQ(*(version / "model.pt2").ResolveFolder(), folder / "model.pt2");
  EXPECT_EQ(*(version / "mounted").ResolveFolder(), folder / "mounted");
  for (const RepositoryPath& path : {version / "outside", *root / "m" / "2" / "back"})
    EXPECT_THAT(Message(path.ResolveFolder().status()), HasSubstr("leads out of the model repository"));
  EXPECT_EQ((version / "none").ResolveFolder().status().code(), absl::StatusCode::kNotFound);

  EXPECT_TRUE(CheckInside(mounted.string(), folder / "model.pt2").ok());
  EXPECT_TRUE(CheckInside(mounted.string(), folder / "none").ok());
  EXPECT_THAT(Message(CheckInside(mounted.string(), folder / "outside")),
              HasSubstr("leads out of the model repository"));
}

TEST(RepositoryPathTest, APipeDoesNotBlock) {
  TestRepository repository;
  ASSERT_EQ(mkfifo((repository.path() / "pipe").c_str(), 0600), 0);
  const auto root = RepositoryPath::Root(repository.string());
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_THAT(Message((*root / "pipe").ReadText(100).status()), HasSubstr("expected a regular file"));
}

TEST(RepositoryPathTest, ListsSortedWithoutHiddenEntries) {
  TestRepository repository;
  repository.Write("b/x", "");
  repository.Write("a", "");
  repository.Write(".hidden/x", "");
  const auto entries = RepositoryPath::Root(repository.string())->List();
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[0].name, "a");
  EXPECT_TRUE((*entries)[0].is_file);
  EXPECT_EQ((*entries)[1].name, "b");
  EXPECT_TRUE((*entries)[1].is_directory);
}

}  // namespace
}  // namespace saccade::server
