// Prints all architectures with their tasks, parameters and options' defaults as JSON, for
// models/reference/architectures_test.py:
//   saccade_list_architectures
#include <cstdio>
#include <exception>
#include <iomanip>
#include <iostream>

#include "models/api/registry.h"

namespace saccade::models {
namespace {

// REQUIRES: names and values have no control characters, which std::quoted does not escape.
void Print(const Description& description, std::ostream& out) {
  out << std::quoted(description.architecture) << ": {\"task\": " << std::quoted(TaskName(description.task))
      << ", \"parameters\": " << description.parameters << ", \"options\": {";
  const char* separator = "";
  for (const auto& [name, value] : description.options) {
    out << separator << std::quoted(name) << ": " << std::quoted(value);
    separator = ", ";
  }
  out << "}}";
}

void PrintAll(std::ostream& out) {
  const char* separator = "{\n";
  for (const std::string& name : Architectures()) {
    out << separator;
    Print(Describe(name, {}), out);
    separator = ",\n";
  }
  out << "\n}\n";
}

}  // namespace
}  // namespace saccade::models

int main() {
  try {
    saccade::models::PrintAll(std::cout);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "saccade_list_architectures: %s\n", error.what());
    return 1;
  }
}
