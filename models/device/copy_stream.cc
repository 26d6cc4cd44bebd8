#include "models/device/copy_stream.h"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <map>
#include <mutex>

namespace saccade::models {

CopyStream::CopyStream(const c10::Device& gpu)
    : stream_(c10::impl::VirtualGuardImpl(gpu.type()).getStreamFromGlobalPool(gpu, /*isHighPriority=*/true)) {
}

const CopyStream& CopyStream::Of(const c10::Device& gpu) {
  static std::mutex mutex;
  static std::map<c10::DeviceIndex, CopyStream> streams;
  const std::lock_guard lock(mutex);
  return streams.try_emplace(gpu.index(), gpu).first->second;
}

at::Tensor CopyStream::Run(const std::function<at::Tensor()>& copy) const {
  const c10::impl::VirtualGuardImpl gpus(stream_.device_type());
  const c10::Stream computing = gpus.getStream(stream_.device());
  c10::Event copied(stream_.device_type());
  at::Tensor result;
  {
    const c10::StreamGuard guard(stream_);
    result = copy();
    copied.record(stream_);
  }
  copied.block(computing);
  // The memory belongs to the copy stream. Without this, the next copy could get it while `computing` reads
  // it.
  gpus.recordDataPtrOnStream(result.storage().data_ptr(), computing);
  return result;
}

}  // namespace saccade::models
