#include "server/pipeline/item_room.h"

#include <new>

#include "absl/strings/str_cat.h"

namespace saccade::server {

absl::StatusOr<std::unique_ptr<float[]>> Allocate(int64_t floats) {
  std::unique_ptr<float[]> room(new (std::nothrow) float[floats]);
  if (room != nullptr) return room;
  return absl::ResourceExhaustedError(
      "out of memory for the network's input; try again later or send a smaller one");
}

absl::Status AtItem(const absl::Status& status, const Request& request, const char* kind, int64_t item,
                    const std::string& part) {
  std::string where = absl::StrCat(std::string(request.input_name), ": ");
  if (request.size() > 1) absl::StrAppend(&where, kind, " ", item, ": ");
  return absl::Status(status.code(), absl::StrCat(where, part, status.message()));
}

}  // namespace saccade::server
