// A test with a folder for pictures and labels.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/string_view.h"
#include "server/pictures/testing/picture_fixtures.h"

namespace saccade::server {

class LabelFolderTest : public ::testing::Test {
 protected:
  LabelFolderTest() { std::filesystem::create_directories(folder_); }
  ~LabelFolderTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(absl::string_view name) const { return folder_ + "/" + std::string(name); }
  // Writes a file, and the folders before it; returns its path.
  std::string Write(absl::string_view name, const std::string& content) const {
    const std::string path = Path(name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  std::string WritePicture(absl::string_view name, int width = 4, int height = 4) const {
    return Write(name, Encode(".png", SmoothPicture(width, height)));
  }

 private:
  const std::string folder_ = ::testing::TempDir() + "/labels." + std::to_string(getpid());
};

}  // namespace saccade::server
