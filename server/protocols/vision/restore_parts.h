// The messages of which the answer of a Restore call consists.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "saccade/v1/vision.pb.h"
#include "server/core/byte_pieces.h"

namespace saccade::server {

class AnswerCharge;

// The most bytes of voxels in one part.
inline constexpr size_t kMaxPartBytes = size_t{1} << 20;

BytePieces ProgressPart(double done);

BytePieces AnswerPart(v1::PredictResponse answer);

// The voxels in [from, from + count), which are referred to. REQUIRES: the range is within `voxels`.
BytePieces VoxelsPart(std::shared_ptr<const std::string> voxels, size_t from, size_t count);

// The voxels together with the charge for them (see Response::charge), which may be null.
std::shared_ptr<const std::string> KeptVoxels(std::shared_ptr<const std::string> voxels,
                                              std::shared_ptr<const AnswerCharge> charge);

}  // namespace saccade::server
