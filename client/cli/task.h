// What sets one task's command apart from another's; what they share is in pictures.h.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/outcome.h"
#include "client/client.h"

namespace saccade::client {

// What is asked about at once: a picture, a pair, a clip.
struct Item {
  // As it is called in what is printed: one file, the left and the right one, a folder.
  std::vector<std::string> names;
  // What is read and sent, in this order.
  std::vector<std::string> files;
};

// Files as they were read, in the item's order.
using Pictures = std::vector<std::string>;

// Both functions are called from several threads at once.
struct Task {
  // The command's: files that other commands write as well have it in their names, so that one folder holds
  // all.
  const char* name = "";
  // 2 for stereo: left and right in turn.
  size_t pictures_an_item = 1;
  // What a file is to be, for who gave an empty one.
  const char* expected = "a JPEG, PNG, WebP or BMP picture";
  // Sends one item.
  std::function<absl::StatusOr<AnyAnswer>(Client& client, const Pictures& pictures)> ask;
  // Draws the answer into files whose names begin with `stem`, and adds them to `written`. May drop from the
  // answer what only drawing needed.
  std::function<absl::Status(const Pictures& pictures, AnyAnswer& answer, const std::string& stem,
                             std::vector<Written>& written)>
      write;
};

}  // namespace saccade::client
