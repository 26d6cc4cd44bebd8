// Output formats of the commands' results.
#pragma once

namespace saccade::client {

// kJson is one document, kJsonLines has a line per result. kCoco and kRoboflow are for detections only.
enum class Format { kText, kJson, kJsonLines, kCoco, kRoboflow };

}  // namespace saccade::client
