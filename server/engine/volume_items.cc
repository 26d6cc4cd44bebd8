#include "server/engine/volume_items.h"

#include <utility>
#include <variant>
#include <vector>

#include "server/decode/volume.h"
#include "server/engine/item_error.h"
#include "server/engine/item_memory.h"

namespace saccade::server {

absl::Status MakeVolumeItem(ItemSink& sink, const models::ImageInput& input, const Decoder& decoder,
                            const StillWanted& wanted, int64_t item) {
  const Request& request = sink.request();
  const Picture& volume = std::get<std::vector<Picture>>(request.input)[item];
  if (absl::Status taken = sink.AddDecodedBytes(decoder.CopiedBytes(volume)); !taken.ok()) return taken;
  const auto header = decoder.ReadVolume(volume, input.volume.max_voxels, wanted);
  if (!header.ok()) return AtItem(header.status(), request, "volume", item);
  if (absl::Status fits = CheckPaddedVoxels(*header, input.volume); !fits.ok())
    return AtItem(fits, request, "volume", item);
  const models::Placement placement =
      models::PlacementOfVolume({header->height, header->width}, header->depth);
  if (item == 0) {
    if (absl::Status worth = sink.Consider({BucketId(placement)}); !worth.ok()) return worth;
  }
  const int64_t voxels = header->voxels();
  // The network's input, its result, and the result as it is sent.
  const int64_t bytes = FloatBytes(3 * voxels) + decoder.CopiedVoxelBytes(volume, *header);
  if (absl::Status taken = sink.AddDecodedBytes(bytes); !taken.ok()) return taken;
  auto room = Allocate(voxels);
  if (!room.ok()) return room.status();
  const absl::Span<float> values(room->get(), voxels);
  if (absl::Status written = decoder.DecodeVolume(volume, *header, values, wanted); !written.ok())
    return AtItem(written, request, "volume", item);
  sink.AddItem({placement, absl::Span<const float>(values), *std::move(room)});
  sink.AddSent({.width = static_cast<int>(header->width),
                .height = static_cast<int>(header->height),
                .voxels = header->type});
  return absl::OkStatus();
}

}  // namespace saccade::server
