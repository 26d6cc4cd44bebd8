#include "server/decode/workers/arena_allocator.h"

#include <opencv2/core.hpp>

#include "server/decode/workers/messages.h"

namespace saccade::server {
namespace {

class ArenaAllocator final : public cv::MatAllocator {
 public:
  void Use(uint8_t* data, size_t bytes) {
    next_ = data;
    left_ = bytes;
  }

  cv::UMatData* allocate(int dims, const int* sizes, int type, void* data, size_t* step, cv::AccessFlag flags,
                         cv::UMatUsageFlags usage) const override {
    const size_t bytes = BytesOf(dims, sizes, type);
    const size_t taken = DecodedOffset(bytes);
    if (data != nullptr || bytes == 0 || taken > left_)
      return cv::Mat::getStdAllocator()->allocate(dims, sizes, type, data, step, flags, usage);
    if (step != nullptr) {
      step[0] = bytes / static_cast<size_t>(sizes[0]);
      step[1] = CV_ELEM_SIZE(type);
    }
    auto* const made = new cv::UMatData(this);
    made->data = made->origdata = next_;
    made->size = bytes;
    next_ += taken;
    left_ -= taken;
    return made;
  }

  bool allocate(cv::UMatData* data, cv::AccessFlag /*flags*/, cv::UMatUsageFlags /*usage*/) const override {
    return data != nullptr;
  }

  // The memory is used again from Use() on.
  void deallocate(cv::UMatData* data) const override { delete data; }

 private:
  // 0 for other matrices than pictures of three 8-bit channels.
  static size_t BytesOf(int dims, const int* sizes, int type) {
    if (dims != 2 || type != CV_8UC3) return 0;
    return static_cast<size_t>(sizes[0]) * static_cast<size_t>(sizes[1]) * CV_ELEM_SIZE(type);
  }

  mutable uint8_t* next_ = nullptr;
  mutable size_t left_ = 0;
};

}  // namespace

void AllocatePicturesIn(uint8_t* data, size_t bytes) {
  // Never destroyed, because matrices of other libraries' statics may outlive it.
  static ArenaAllocator* const allocator = new ArenaAllocator;
  allocator->Use(data, bytes);
  cv::Mat::setDefaultAllocator(allocator);
}

}  // namespace saccade::server
