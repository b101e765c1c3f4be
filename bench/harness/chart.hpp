#pragma once

#include "harness/table.hpp"

#include <string>
#include <utility>
#include <vector>

namespace kumi::bench {

struct Curve {
    std::string name;
    std::vector<std::pair<double, double>> points; // x from left to right
};

/// The medians of a contestant in some rows, each at its x. A row that was not measured has no point.
Curve measured_curve(const Table& table, const std::string& who, const std::string& name,
                     const std::vector<std::pair<double, std::string>>& rows);

/// Curves as a picture (SVG), both axes by powers: of two to the right, of ten upwards. All values are above zero.
std::string chart(const std::string& title, const std::string& x_name, const std::string& y_name,
                  const std::vector<Curve>& curves);

/// Writes a picture into `folder`. A note of the table tells of it.
void draw(const std::string& folder, const std::string& file, const std::string& picture, Table& table);

} // namespace kumi::bench
