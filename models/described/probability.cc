#include "models/described/probability.h"

#include <sstream>

namespace saccade::models {

bool IsProbability(float value) {
  constexpr float kRounding = 0.01F;
  return value >= -kRounding && value <= 1 + kRounding;
}

Failure NoProbability(const char* role, float value) {
  std::ostringstream text;
  text << "the program's " << role << " have the value " << value
       << ", which is no probability; expected 0 to 1 with head.activation \"none\", or set it to what the "
          "network leaves out: \"sigmoid\" or \"softmax\"";
  return {text.str()};
}

}  // namespace saccade::models
