#include "server/protocols/vision/restore_parts.h"
#include "server/grpc/serialize_message.h"

#include <google/protobuf/io/coded_stream.h>

#include <cstdint>
#include <string_view>
#include <utility>

namespace saccade::server {
namespace {

using google::protobuf::io::CodedOutputStream;

// The tag of a bytes field: wire type 2.
constexpr uint32_t kVoxelsTag = v1::RestoreResponse::kVoxelsFieldNumber << 3 | 2;
// Maximum lengths of the tag and of the field's length.
constexpr size_t kMaxHead = 5 + 10;

}  // namespace

BytePieces ProgressPart(double done) {
  v1::RestoreResponse part;
  part.mutable_progress()->set_done(done);
  return SerializeMessage(part);
}

BytePieces AnswerPart(v1::PredictResponse answer) {
  v1::RestoreResponse part;
  *part.mutable_answer() = std::move(answer);
  return SerializeMessage(part);
}

BytePieces VoxelsPart(std::shared_ptr<const std::string> voxels, size_t from, size_t count) {
  struct Owner {
    uint8_t head[kMaxHead];
    std::shared_ptr<const std::string> voxels;
  };
  const auto owner = std::make_shared<Owner>();
  uint8_t* const end = CodedOutputStream::WriteVarint64ToArray(
      count, CodedOutputStream::WriteTagToArray(kVoxelsTag, owner->head));
  owner->voxels = std::move(voxels);
  BytePieces part({reinterpret_cast<const char*>(owner->head), static_cast<size_t>(end - owner->head)},
                  owner);
  part.Add(std::string_view(*owner->voxels).substr(from, count));
  return part;
}

std::shared_ptr<const std::string> KeptVoxels(std::shared_ptr<const std::string> voxels,
                                              std::shared_ptr<const AnswerCharge> charge) {
  struct Owner {
    std::shared_ptr<const std::string> voxels;
    std::shared_ptr<const AnswerCharge> charge;
  };
  const auto owner = std::make_shared<const Owner>(Owner{std::move(voxels), std::move(charge)});
  return {owner, owner->voxels.get()};
}

}  // namespace saccade::server
