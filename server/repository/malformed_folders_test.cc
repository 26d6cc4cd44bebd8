// Folders that are not valid models, each with a part of the expected error. For errors in a configuration's
// text, see malformed_test.cc.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/repository/repository.h"
#include "server/repository/stamps.h"
#include "server/repository/testing/test_repository.h"

namespace saccade::server {
namespace {

namespace fs = std::filesystem;

constexpr char kConfig[] = "parameters { key: \"architecture\" value { string_value: \"sanet\" } }\n";
constexpr char kWeights[] = "1/weights.safetensors";
constexpr size_t kMaxWords = 1000;

// The model's folder, and a folder outside of the repository.
struct Place {
  fs::path model;
  fs::path outside;

  void Write(const std::string& file, const std::string& text) const {
    fs::create_directories((model / file).parent_path());
    std::ofstream(model / file, std::ios::binary) << text;
  }
};

struct Malformed {
  const char* name;
  // Damages a model that has a configuration, labels, and weights of version 1.
  std::function<void(const Place&)> damage;
  const char* words;
  // True if the model can be read and the error is in the status of its version.
  bool of_version = false;
};

std::string LengthThen(uint64_t length, const std::string& rest) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xFF);
  return bytes + rest;
}

void RemoveConfig(const Place& place) { fs::remove(place.model / "config.pbtxt"); }

// Removes the configuration, so that the architecture must be read from the weights, and writes `bytes` as
// weights.
std::function<void(const Place&)> Weights(const std::string& bytes) {
  return [bytes](const Place& place) {
    RemoveConfig(place);
    place.Write(kWeights, bytes);
  };
}

std::function<void(const Place&)> Config(const std::string& text) {
  return [text](const Place& place) { place.Write("config.pbtxt", text); };
}

std::function<void(const Place&)> VersionNamed(const std::string& name) {
  return [name](const Place& place) { fs::rename(place.model / "1", place.model / name); };
}

// Replaces `file`.
std::function<void(const Place&)> Instead(const std::string& file,
                                          const std::function<void(const fs::path&)>& make) {
  return [file, make](const Place& place) {
    fs::remove_all(place.model / file);
    make(place.model / file);
  };
}

void Folder(const fs::path& path) { fs::create_directory(path); }
void Pipe(const fs::path& path) { ASSERT_EQ(mkfifo(path.c_str(), 0600), 0); }
void Circle(const fs::path& path) { fs::create_symlink(path.filename(), path); }
void Dangling(const fs::path& path) { fs::create_symlink("nowhere", path); }
void Device(const fs::path& path) { fs::create_symlink("/dev/zero", path); }
void File(const fs::path& path) { std::ofstream(path) << "x"; }

std::vector<Malformed> Corpus() {
  const std::string digits(200, '9');
  const std::string text = std::string(1 << 16, 'a') + ": 1";
  return {
      {"config_is_a_folder", Instead("config.pbtxt", Folder), "m/config.pbtxt: expected a regular file"},
      {"config_is_a_pipe", Instead("config.pbtxt", Pipe), "m/config.pbtxt: expected a regular file"},
      {"config_is_a_circle", Instead("config.pbtxt", Circle), "m/config.pbtxt: cannot open it"},
      {"config_leads_nowhere", Instead("config.pbtxt", Dangling), "m/config.pbtxt: cannot open it"},
      {"config_is_a_device", Instead("config.pbtxt", Device), "m/config.pbtxt: a symbolic link leads out"},
      {"config_is_empty", Config(""), "parameters['architecture']: is missing"},
      {"config_is_binary",
       Config(std::string("\x7f"
                          "ELF\x02\x01\x01\0\0",
                          9)),
       "m/config.pbtxt: is not UTF-8"},
      {"config_holds_nul", Config(std::string(kConfig) + '\0'), "m/config.pbtxt: is not UTF-8"},
      {"config_is_utf_16", Config(std::string("\xFF\xFEp\0a\0", 6)), "m/config.pbtxt: is not UTF-8"},
      {"config_begins_with_a_mark", Config(absl::StrCat("\xEF\xBB\xBF", "max_batch_size: \"a\"")),
       "m/config.pbtxt:1"},
      {"config_is_huge", Config(std::string(2 << 20, '#')),
       "m/config.pbtxt: is larger than the maximum of 1048576 bytes"},
      {"config_is_a_long_line", Config(text), "m/config.pbtxt:1"},
      {"config_is_deep", Config([] {
         std::string deep;
         for (int i = 0; i < 20'000; ++i) deep += "ensemble_scheduling{step{";
         return deep;
       }()),
       "m/config.pbtxt:1"},
      {"config_is_all_quotes", Config(std::string(1 << 20, '"')), "m/config.pbtxt:1"},
      {"config_of_many_inputs", Config([] {
         std::string many = kConfig;
         for (int i = 0; i < 50'000; ++i) many += "input{}\n";
         return many;
       }()),
       "input: is given more than 1024 times"},
      {"labels_are_a_folder", Instead("labels.txt", Folder), "m/labels.txt: expected a regular file"},
      {"labels_are_a_pipe", Instead("labels.txt", Pipe), "m/labels.txt: expected a regular file"},
      {"labels_are_binary", [](const Place& place) { place.Write("labels.txt", "\xC3("); },
       "m/labels.txt: is not UTF-8"},
      {"labels_are_huge", [](const Place& place) { place.Write("labels.txt", std::string(5 << 20, 'a')); },
       "m/labels.txt: is larger than"},
      {"labels_of_escapes", [](const Place& place) { place.Write("labels.txt", "a\n\x1b[31mb\n"); },
       "m/labels.txt: line 2 holds a control character"},
      {"no_version", [](const Place& place) { fs::remove_all(place.model / "1"); }, "m: has no version"},
      {"version_is_a_file", Instead("1", File), "m: has no version"},
      {"version_is_a_pipe", Instead("1", Pipe), "m: has no version"},
      {"version_leads_nowhere", Instead("1", Dangling), "m: has no version"},
      {"version_is_a_circle", Instead("1", Circle), "m: has no version"},
      {"version_0", VersionNamed("0"), "m/0: is not a version; expected a positive integer"},
      {"version_below_0", VersionNamed("-1"), "m: has no version"},
      {"version_01", VersionNamed("01"), "m/01: is not a version; expected a positive integer"},
      {"version_1_5", VersionNamed("1.5"), "m: has no version"},
      {"version_beyond_int64", VersionNamed("9223372036854775808"), "is not a version; expected a positive"},
      {"version_of_many_digits", VersionNamed(digits), "is not a version; expected a positive integer"},
      {"version_leads_out",
       [](const Place& place) {
         fs::rename(place.model / "1", place.outside / "1");
         fs::create_symlink(place.outside / "1", place.model / "1");
       },
       "m/1: a symbolic link leads out", true},
      {"version_is_empty", [](const Place& place) { fs::remove(place.model / kWeights); },
       "m/1: has no weights; expected weights.safetensors", true},
      {"weights_are_a_folder", Instead(kWeights, Folder), "weights.safetensors: expected a regular file",
       true},
      {"weights_are_a_pipe", Instead(kWeights, Pipe), "weights.safetensors: expected a regular file", true},
      {"weights_lead_nowhere", Instead(kWeights, Dangling), "m/1/weights.safetensors: cannot open it", true},
      {"weights_are_a_device", Instead(kWeights, Device), "a symbolic link leads out", true},
      {"weights_of_many_names",
       [](const Place& place) {
         fs::remove(place.model / kWeights);
         for (int i = 0; i < 500; ++i) place.Write(absl::StrCat("1/", i, "\x1b\nOK.pt"), "w");
       },
       "m/1: has several weights files ('0\\x1b\\nOK.pt', '1\\x1b", true},
      {"weights_are_empty", Weights(""), "m/1/weights.safetensors: "},
      {"weights_are_half_a_length", Weights("\x01\x02\x03"), "m/1/weights.safetensors: "},
      {"weights_end_in_the_header", Weights(LengthThen(100, "{\"__metadata__\":{\"sacc")),
       "m/1/weights.safetensors: "},
      {"weights_of_exabytes", Weights(LengthThen(uint64_t{1} << 62, "{}")), "m/1/weights.safetensors: "},
      {"weights_of_a_wrapping_length", Weights(LengthThen(~uint64_t{0}, "{}")), "m/1/weights.safetensors: "},
      {"weights_are_no_json", Weights(LengthThen(4, "\xFF\xFE{}")), "m/1/weights.safetensors: "},
      {"weights_are_deep", Weights(LengthThen(100'000, std::string(100'000, '['))),
       "m/1/weights.safetensors: "},
      {"weights_tell_no_architecture", Weights(LengthThen(2, "{}")), "m/config.pbtxt is missing"},
      {"policy_names_none_of_many",
       [](const Place& place) {
         for (int i = 2; i <= 200; ++i) place.Write(absl::StrCat(i, "/weights.pt"), "w");
         place.Write("config.pbtxt",
                     absl::StrCat(kConfig, "version_policy { specific { versions: [ 300, 301 ] } }"));
       },
       "names versions 300, 301, which do not exist; available are 1, 2, 3, 4, 5, 6, 7, 8 and 192 more"},
      {"model_is_a_pipe",
       [](const Place& place) {
         fs::remove_all(place.model);
         Pipe(place.model);
       },
       "m: cannot list it"},
      {"model_leads_nowhere",
       [](const Place& place) {
         fs::remove_all(place.model);
         Dangling(place.model);
       },
       "m: cannot open it"},
      {"model_leads_out",
       [](const Place& place) {
         fs::rename(place.model, place.outside / "m");
         fs::create_symlink(place.outside / "m", place.model);
       },
       "m: a symbolic link leads out"},
  };
}

class FoldersTest : public testing::Test {
 protected:
  FoldersTest() {
    repository_.Write("m/config.pbtxt", kConfig);
    repository_.Write("m/labels.txt", "a\nb\n");
    repository_.Write(absl::StrCat("m/", kWeights), LengthThen(2, "{}"));
    repository_.Write("sound/config.pbtxt", kConfig);
    repository_.Write("sound/1/weights.pt", "w");
  }

  Place place() const { return {repository_.path() / "m", elsewhere_.path()}; }

  TestRepository repository_;
  TestRepository elsewhere_;
};

class MalformedFoldersTest : public FoldersTest, public testing::WithParamInterface<Malformed> {};

TEST_P(MalformedFoldersTest, IsToldAndHidesNoOther) {
  GetParam().damage(place());
  const auto scan = ScanRepository(repository_.string());
  ASSERT_TRUE(scan.ok()) << scan.status();
  std::string error;
  if (GetParam().of_version) {
    ASSERT_EQ(scan->models.size(), 2u) << scan->broken.at(0).status;
    ASSERT_EQ(scan->models[0].versions.size(), 1u);
    error = std::string(scan->models[0].versions[0].status.message());
  } else {
    ASSERT_EQ(scan->models.size(), 1u);
    ASSERT_EQ(scan->broken.size(), 1u);
    EXPECT_EQ(scan->broken[0].name, "m");
    error = std::string(scan->broken[0].status.message());
  }
  EXPECT_EQ(scan->models.back().settings.name, "sound");
  EXPECT_THAT(error, testing::HasSubstr(GetParam().words));
  EXPECT_LT(error.size(), kMaxWords) << error;
  EXPECT_THAT(error, testing::Not(testing::HasSubstr("\n"))) << "one line is one model";
  // The same folder is also read when the repository is polled.
  StampModel(repository_.string(), "m").IgnoreError();
}

INSTANTIATE_TEST_SUITE_P(All, MalformedFoldersTest, testing::ValuesIn(Corpus()),
                         [](const auto& test) { return test.param.name; });

TEST_F(FoldersTest, WhatMayNotBeReadIsToldByItsName) {
  // Root can read all files, so run as another user.
  constexpr uid_t kNobody = 65534;
  const bool is_root = geteuid() == 0;
  fs::permissions(repository_.path(), fs::perms::all);
  for (const char* path : {"m/config.pbtxt", "m/labels.txt", "m/1", "m"}) {
    const fs::path file = repository_.path() / path;
    const auto perms = fs::status(file).permissions();
    fs::permissions(file, fs::perms::none);
    std::string error;
    {
      ASSERT_EQ(is_root ? seteuid(kNobody) : 0, 0);
      const auto again = absl::MakeCleanup([is_root] { ASSERT_EQ(is_root ? seteuid(0) : 0, 0); });
      const auto model = ReadModel(repository_.string(), "m");
      error = model.ok() ? std::string(model->versions.at(0).status.message())
                         : std::string(model.status().message());
    }
    fs::permissions(file, perms);
    EXPECT_THAT(error, testing::HasSubstr(path));
    EXPECT_THAT(error, testing::HasSubstr("ermission denied"));
  }
}

TEST_F(FoldersTest, TenThousandVersionsAreNoTrouble) {
  for (int i = 2; i <= 10'000; ++i) fs::create_symlink("1", repository_.path() / "m" / absl::StrCat(i));
  const auto model = ReadModel(repository_.string(), "m");
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->versions.size(), 1u);
  EXPECT_EQ(model->versions[0].version, 10'000);
}

}  // namespace
}  // namespace saccade::server
