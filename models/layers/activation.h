// What a layer applies to its result.
#pragma once

namespace saccade::models {

enum class Activation { kNone, kRelu, kRelu6 };

}  // namespace saccade::models
