// The benchmark's table: what was measured, what was to be reached, and whether it was.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace saccade::server::simulation {

class Report {
 public:
  // Rows from here on belong to it. `text` says how they were measured.
  void Section(std::string title, std::string text);

  // Without a target.
  void Note(std::string what, std::string figure);

  void AtLeast(std::string what, double figure, double target, int digits = 3, const std::string& unit = "");
  void AtMost(std::string what, double figure, double target, int digits = 3, const std::string& unit = "");

  // A plot beside the report, shown below the section's table.
  void Plot(const std::string& title, const std::string& file);

  // How many targets were missed.
  int missed() const;

  std::string Markdown() const;

 private:
  struct Row {
    std::string what;
    std::string figure;
    std::string target;
    std::optional<bool> reached;
  };
  struct Part {
    std::string title;
    std::string text;
    std::vector<Row> rows;
    std::vector<std::string> plots;
  };

  void Add(Row row);

  std::vector<Part> parts_;
};

// So many digits after the point.
std::string Rounded(double value, int digits);

}  // namespace saccade::server::simulation
