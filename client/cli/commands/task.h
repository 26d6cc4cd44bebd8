// The parts of a command that differ between tasks; pictures.h has the shared ones.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/output/outcome.h"
#include "client/cpp/client.h"

namespace saccade::client {

// The input of one request: a picture, a pair, or a clip.
struct Item {
  // Names for the output: one file, the left and the right one, or a folder.
  std::vector<std::string> names;
  // Files that are read and sent, in this order.
  std::vector<std::string> files;
};

// Contents of an item's files, in the item's order.
using Pictures = std::vector<std::string>;

// `ask` and `write` are called from several threads concurrently.
struct Task {
  // The command's name. It is part of the names of files that other commands write as well, so that one
  // folder can hold all.
  const char* name = "";
  // 2 for stereo: left and right in turn.
  size_t pictures_per_item = 1;
  // The expected content of a file, for the error message about an empty one.
  const char* expected = "a JPEG, PNG, WebP, TIFF or BMP picture";
  // Sends one item.
  std::function<absl::StatusOr<AnyAnswer>(Client& client, const Pictures& pictures)> ask;
  // Draws the answer into files whose names begin with `stem`, and adds them to `written`. May remove data
  // from the answer that only drawing needed.
  std::function<absl::Status(const Pictures& pictures, AnyAnswer& answer, const std::string& stem,
                             std::vector<Written>& written)>
      write;
};

}  // namespace saccade::client
