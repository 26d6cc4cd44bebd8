// Test helper: a repository in a temporary folder.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace saccade::server {

// The destructor deletes the folder.
class TestRepository {
 public:
  TestRepository() {
    std::string name = (std::filesystem::temp_directory_path() / "saccade_repository_XXXXXX").string();
    root_ = mkdtemp(name.data());
  }
  ~TestRepository() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  TestRepository(const TestRepository&) = delete;
  TestRepository& operator=(const TestRepository&) = delete;

  const std::filesystem::path& path() const { return root_; }
  std::string string() const { return root_.string(); }

  void Write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file, std::ios::binary) << text;
  }

 private:
  std::filesystem::path root_;
};

}  // namespace saccade::server
